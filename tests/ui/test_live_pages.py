"""Real runs in a browser, with the real server: watch one move, look at a vertex, cancel it."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from pyrite.instances import Instance
from tests.ui.test_run_pages import rate_of
from tests.watching.jobs import Gate, failing


def open_page(page: Page, instance: Instance) -> None:
    assert instance.ui_url is not None
    page.goto(instance.ui_url)


def test_a_job_is_found_watched_and_ends(page: Page, shown: Instance) -> None:
    open_page(page, shown)
    expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
    gate = Gate()
    shown.new_light_job(gate.dag()).execute()
    page.get_by_role("link", name="source … sink").click()
    expect(page.locator(".vertex.s-running")).to_have_count(2)
    page.locator('[data-vertex="sink"]').click()
    expect(page.locator(".panel .name")).to_have_text("sink")
    received = page.get_by_role("row", name="sink").locator("td").nth(2)
    before = received.text_content()
    expect(received).not_to_have_text(before or "")
    gate.open()
    expect(page.locator("h1 .badge")).to_have_text("completed")
    expect(page.locator(".vertex.s-completed")).to_have_count(2)
    assert rate_of(page, "sink").endswith(" in")


def test_a_job_is_cancelled_from_the_page(page: Page, shown: Instance) -> None:
    execution = shown.new_light_job(Gate().dag()).execute()
    open_page(page, shown)
    page.get_by_role("link", name="source … sink").click()
    page.get_by_role("button", name="Cancel run").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel run").click()
    expect(page.locator("h1 .badge")).to_have_text("cancelled")
    assert execution.cancelled()


def test_a_job_that_failed_says_why(page: Page, shown: Instance) -> None:
    shown.new_light_job(failing("no such day")).execute().exception(10)
    open_page(page, shown)
    page.get_by_role("link", name="source … step").click()
    failure = page.get_by_role("region", name="It failed")
    expect(failure).to_contain_text("no such day")
    expect(failure).to_contain_text("jobs.py")
    expect(page.locator('[data-vertex="step"]')).to_have_class("vertex s-failed")
