"""The pictures of the documentation show what there is."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from scripts.draw_pictures import DRAWN, PICTURES, layers, rooms


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
