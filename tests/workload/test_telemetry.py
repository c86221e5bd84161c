"""What platform teams see of a workload: its run, its jobs, and what these run in their workers."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from pyrite.telemetry import prometheus
from pyrite.workload import Workload
from tests.ports import free_port
from tests.telemetry.scraping import Taking, samples_of, scrape, taking
from tests.telemetry.test_traces import spans_of


def light() -> None:
    """A job that runs a light job of Pyrite."""
    import pyrite

    pipe = pyrite.Pipeline()
    pipe.read_from([1]).map(abs).write_to(pyrite.processors.noop())
    with pyrite.instance() as pyr:
        pyr.new_light_job(pipe).execute().result(10)


def scraped() -> str:
    """A job that scrapes its master."""
    port = os.environ["PYRITE_PROMETHEUS"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def fails() -> None:
    raise ValueError("bad luck")


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Taking]:
    monkeypatch.delenv("TRACEPARENT", raising=False)
    with taking() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        yield found


def test_a_trace_has_the_run_its_jobs_and_what_they_run(
    tmp_path: Path, collector: Taking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", f"00-{'ab' * 16}-{'cd' * 8}-01")
    workload = Workload().add("light", light).add("fails", fails)
    workload.run(kind="persistent", workers=1, store=tmp_path / "nightly").wait()
    collector.wait_for(3)
    _wait_for(collector, "run nightly")
    spans = {span.name: span for span in spans_of(collector)}
    run, job, failed = spans["run nightly"], spans["job light"], spans["job fails"]
    inner = next(span for name, span in spans.items() if name.startswith("job read_items"))
    stage = next(span for name, span in spans.items() if name.startswith("stage"))
    assert {span.trace_id.hex() for span in spans.values()} == {"ab" * 16}
    assert run.parent_span_id.hex() == "cd" * 8
    assert job.parent_span_id == failed.parent_span_id == run.span_id
    assert (inner.parent_span_id, stage.parent_span_id) == (job.span_id, inner.span_id)
    assert failed.status.code == run.status.code == Status.STATUS_CODE_ERROR
    assert "bad luck" in failed.status.message


def _wait_for(collector: Taking, name: str) -> None:
    """The master sends its last span after it has said that the run has ended."""
    while not any(span.name == name for span in spans_of(collector)):
        collector.wait_for(len(collector.taken) + 1)


def test_lineage_has_the_run_its_jobs_and_what_they_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with taking() as server:
        monkeypatch.setenv("OPENLINEAGE_URL", server.url)
        workload = Workload().add("light", light).add("fails", fails)
        workload.run(kind="persistent", workers=1, store=tmp_path / "nightly").wait()
        server.wait_for(8)
    events = [json.loads(body) for _, body in server.taken]
    by_job: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        by_job.setdefault(event["job"]["name"], []).append(event)
    assert {name: [each["eventType"] for each in found] for name, found in by_job.items()} == {
        "nightly": ["START", "FAIL"],
        "nightly.light": ["START", "COMPLETE"],
        "nightly.fails": ["START", "FAIL"],
        "read_items … noop": ["START", "COMPLETE"],
    }
    run = by_job["nightly"][0]["run"]["runId"]
    job = by_job["nightly.light"][0]
    assert job["run"]["facets"]["parent"]["run"]["runId"] == run
    inner = by_job["read_items … noop"][0]["run"]["facets"]["parent"]
    assert inner["run"]["runId"] == job["run"]["runId"]
    assert inner["root"]["run"]["runId"] == run
    error = by_job["nightly.fails"][1]["run"]["facets"]["errorMessage"]
    assert "bad luck" in error["message"]


def test_a_master_can_be_scraped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYRITE_PROMETHEUS", str(free_port()))
    workload = Workload().add("first", int).add("second", scraped, after=["first"])
    run = workload.run(kind="persistent", workers=1, store=tmp_path / "nightly").wait()
    found = samples_of(run.results["second"])
    assert ("pyrite_job_last_success_timestamp_seconds", "nightly.first") in found
    assert found["pyrite_job_running", "nightly"] == 1
    assert found["pyrite_workload_jobs", "DONE", "nightly"] == 1


def test_a_run_on_threads_is_counted_in_this_process(tmp_path: Path) -> None:
    with prometheus(port=0) as endpoint, ThreadPoolExecutor(1) as pool:
        Workload().add("light", light).add("fails", fails).run(
            kind="transient", executor=pool, store=tmp_path / "threads"
        ).wait()
        found = scrape(endpoint.url)
    assert found["pyrite_workload_jobs", "FAILED", "threads"] == 1
    assert found["pyrite_job_runs_total", "threads.light", "completed"] == 1
    assert found["pyrite_job_runs_total", "threads.fails", "failed"] == 1
    assert found["pyrite_job_runs_total", "threads", "failed"] == 1


def test_a_job_that_is_up_to_date_is_no_run(tmp_path: Path) -> None:
    with prometheus(port=0) as endpoint, ThreadPoolExecutor(1) as pool:
        for _ in range(2):
            Workload().add("once", int).run(
                kind="transient", executor=pool, store=tmp_path / "twice"
            ).wait()
        found = scrape(endpoint.url)
    assert found["pyrite_job_runs_total", "twice.once", "completed"] == 1
    assert found["pyrite_workload_jobs", "SKIPPED", "twice"] == 1


def fails_once(path: str) -> None:
    if not os.path.exists(path):
        Path(path).touch()
        raise ValueError("bad luck")


@pytest.mark.parametrize("kind", ["persistent", "transient"])
def test_each_attempt_is_a_run(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with taking() as server:
        monkeypatch.setenv("OPENLINEAGE_URL", server.url)
        Workload().add("job", fails_once, args=[str(tmp_path / "mark")], retries=1).run(
            kind=kind, workers=1, store=tmp_path / "again"
        ).wait()
        server.wait_for(6)
    events = [json.loads(body) for _, body in server.taken]
    told = [(each["job"]["name"], each["eventType"]) for each in events]
    assert told == [
        ("again", "START"),
        ("again.job", "START"),
        ("again.job", "FAIL"),
        ("again.job", "START"),
        ("again.job", "COMPLETE"),
        ("again", "COMPLETE"),
    ]
    runs = [each["run"]["runId"] for each in events]
    assert len(set(runs)) == 3
    assert (runs[1], runs[3]) == (runs[2], runs[4])
    assert "bad luck" in events[2]["run"]["facets"]["errorMessage"]["message"]


def dies() -> None:
    os._exit(3)


def test_a_job_that_kills_its_worker_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with taking() as server:
        monkeypatch.setenv("OPENLINEAGE_URL", server.url)
        Workload().add("job", dies).run(kind="persistent", workers=1, store=tmp_path / "x").wait()
        server.wait_for(8)
    events = [json.loads(body) for _, body in server.taken]
    told = [(each["job"]["name"], each["eventType"]) for each in events]
    tries = [("x.job", "START"), ("x.job", "FAIL")] * 3
    assert told == [("x", "START"), *tries, ("x", "FAIL")]
