"""The pictures of the documentation show what there is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts.draw_pictures import DRAWN, PICTURES, ROOT, layers, rooms


def texts(svg: str) -> list[str]:
    return sorted(re.findall(r"<text[^>]*>([^<]+)</text>", svg))


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_up_to_date(name: str) -> None:
    draw: Callable[[], str] = DRAWN[name]
    assert texts((PICTURES / name).read_text()) == texts(draw()), (
        "run `python -m scripts.draw_pictures` to draw it again"
    )


def test_the_picture_of_the_rooms_has_all_layers() -> None:
    names = {name for row in layers() for name in row}
    assert names <= set(texts(rooms()))


def test_contributing_names_only_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    blocks = re.findall(r"^```\n(.*?)^```", text.partition("## The way of an item")[2], re.S | re.M)
    way = "\n".join(blocks[:4])
    named = re.findall(r"\b(?:[a-z_]+/)+(?:[a-z_]+\.py)?|\b[a-z_]+\.py", way)
    assert len(named) > 20
    package = ROOT / "src" / "pyrite"
    assert [name for name in named if not _is_there(package, name)] == []


def _is_there(package: Path, name: str) -> bool:
    return any((package / below / name).exists() for below in ("", "processors"))
