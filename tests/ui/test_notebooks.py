"""What a notebook shows, in a real browser: readable in dark and light, and complete by itself."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from pyrite.watching.notebook.runs import run_html
from pyrite.watching.views import EdgeView, RunView, VertexView

VIEW = RunView(
    id="1",
    job_id="2",
    name="words",
    kind="normal",
    state="running",
    submitted=10.0,
    seen=20.0,
    vertices=(
        VertexView(name="lines", state="running", emitted=1200, emitted_rate=120.0),
        VertexView(name="<i>count</i>", received=1200, received_rate=120.0),
    ),
    edges=(EdgeView(source="lines", destination="<i>count</i>", label="partitioned"),),
)


def brightness(page: Page, selector: str, of: str) -> float:
    """From 0 to 255: the colour that the browser gives to the first such element."""
    found = page.locator(selector).first.evaluate(f"e => getComputedStyle(e)['{of}']")
    return sum(int(part) for part in re.findall(r"\d+", found)[:3]) / 3


@pytest.mark.parametrize("is_light", [True, False])
def test_a_run_is_readable_in_the_theme_of_the_notebook(page: Page, is_light: bool) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    theme = "true" if is_light else "false"
    page.set_content(f'<body data-jp-theme-light="{theme}">{run_html(VIEW)}</body>')
    background = brightness(page, ".pyrite", "background-color")
    assert (background > 200) is is_light
    for text in (".pyrite-head b", ".pyrite td", ".pyrite th"):
        assert abs(brightness(page, text, "color") - background) > 90
    assert abs(brightness(page, ".edge .label", "fill") - background) > 90
    name = brightness(page, ".vertex .name", "fill")
    assert abs(name - brightness(page, ".vertex .box", "fill")) > 90
    assert page.get_by_text("<i>count</i>").count() >= 2
    assert requests == []
