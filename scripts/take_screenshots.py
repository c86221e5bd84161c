"""Takes the pictures of the page for the documentation, with a real job in a real browser, into
docs/pictures/: `python -m scripts.take_screenshots`. It needs Chromium, as Debian has it."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

import pyrite
from pyrite import Pipeline
from pyrite import processors as p

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


def shop() -> Pipeline:
    """Runs for about ten seconds."""

    def priced(order: int) -> int:
        if order % 50 == 0:
            time.sleep(0.03)
        return order

    pipe = Pipeline()
    orders = pipe.read_from(range(20_000), name="orders").map(priced, name="price")
    good, bad = orders.split(lambda order: order % 7, name="check")
    spread = good.rebalance(lambda order: order % 5, name="by shop", parallelism=2)
    totals = spread.group_by(lambda order: order % 5).count(name="totals")
    totals.write_to(p.write_map("totals"), name="write totals")
    bad.write_to(p.write_list("bad"), name="write bad")
    return pipe


def take(folder: Path) -> None:
    with pyrite.instance(ui=True) as pyr, sync_playwright() as playwright:
        execution = pyr.new_light_job(shop()).execute()
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=OPTIONS)
        page = browser.new_page(viewport={"width": 1100, "height": 720})
        page.goto(f"{pyr.ui_url}runs/{execution.id}")
        page.wait_for_timeout(4000)  # until the rates and their history are there
        page.screenshot(path=folder / "page.png")
        browser.close()
        execution.cancel()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as runs:
        os.environ["PYRITE_RUNS"] = runs
        take(PICTURES)
