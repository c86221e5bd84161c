"""Real runs in a browser, with the real server: watch one move, look at a vertex, cancel it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pyrite import DAG, between, processors
from pyrite.instances import Instance
from pyrite.ui.opening import serve, sources_of
from pyrite.workload import Workload
from tests.durable.threads import running
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
    expect(page.locator(".panel .spark")).to_be_visible()  # the points of several events
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


GATE = threading.Event()


def hold(item: int = 0) -> int:
    print("holding")
    assert GATE.wait(20)
    return item


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    GATE.clear()
    yield GATE
    GATE.set()


def test_a_workload_is_watched_and_cancelled(
    page: Page, tmp_path: Path, gate: threading.Event
) -> None:
    workload = Workload().add("first", int).add("held", hold, after="first").add("last", int)
    with ThreadPoolExecutor(2) as threads:
        store = tmp_path / "night"
        run = workload.run(store=store, kind="transient", executor=threads, workers=2)
        with serve(sources_of(tmp_path / "runs", workloads=[store])) as server:
            page.goto(f"{server.url}workloads")
            page.get_by_role("link", name="night").click()
            expect(page.locator('[data-vertex="first"]')).to_have_class("vertex s-done")
            page.locator('[data-vertex="held"]').click()
            expect(page.locator(".panel")).to_contain_text("it has no earlier result")
            page.get_by_role("button", name="Cancel workload").click()
            page.get_by_role("dialog").get_by_role("button", name="Cancel workload").click()
            expect(page.locator('.s-cancelled[data-vertex="held"]')).to_be_visible()
            gate.set()
            run.wait(20)
            expect(page.locator("h1 .badge")).to_have_text("cancelled")


def test_a_durable_job_is_watched_and_cancelled(
    page: Page, tmp_path: Path, gate: threading.Event
) -> None:
    dag = DAG()
    source = dag.vertex("read", processors.read_items(range(5)))
    dag.edge(between(source, dag.vertex("work", processors.map(hold))).distributed())
    place = str(tmp_path / "jobs")
    sources = sources_of(tmp_path / "runs", durable=[place])
    with running(Path(place), peers=2) as threads, serve(sources) as server:
        execution = threads.execute(dag, name="held job", members=1)
        page.goto(f"{server.url}durable")
        page.get_by_role("link", name="jobs").click()
        expect(page.locator(".lane")).to_have_count(2)
        page.get_by_role("table", name="Jobs").get_by_role("link", name="held job").click()
        expect(page.locator(".vertex")).to_have_count(2)
        page.get_by_role("button", name="Cancel run").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel run").click()
        gate.set()
        expect(page.locator("h1 .badge")).to_have_text("cancelled")
        assert execution.cancelled()
