"""One browser and one stub server for all tests of the page; a new tab for each test. And the real
server, in an instance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import pyrite
from pyrite.instances import Instance
from tests.ui.stub import Stub

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip("Chromium is not installed; on Debian: apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def one_stub() -> Iterator[Stub]:
    stub = Stub()
    yield stub
    stub.close()


@pytest.fixture
def stub(one_stub: Stub) -> Stub:
    one_stub.clear()
    return one_stub


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab in which no script may fail and nothing may break the policy of the page."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(8000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda line: problems.append(line.text) if line.type == "error" else None,
    )
    yield page
    context.close()
    assert not [each for each in problems if "Failed to load resource" not in each]


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Instance]:
    """An instance with a page."""
    monkeypatch.setenv("PYRITE_RUNS", str(tmp_path / "runs"))
    with pyrite.instance(ui=True) as instance:
        yield instance
