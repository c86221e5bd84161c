"""Whoever follows runs is told of each end once, before what it has to tell is sent."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from pyrite import Instance, JobConfig, Pipeline, PyriteError, processors
from pyrite.job import Execution, Job
from pyrite.telemetry import lineage, prometheus, traces
from pyrite.telemetry.following import Following
from pyrite.watching.observers import begun
from tests.telemetry.scraping import scrape, taking
from tests.telemetry.test_prometheus import chain


class Slow(Following):
    """Looks at an end for as long as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = threading.Event()
        self.may_end = threading.Event()
        self.ended: list[Execution] = []

    def on_end(self, execution: Execution) -> None:
        self.has_begun.set()
        assert self.may_end.wait(10)
        self.ended.append(execution)


def test_it_waits_for_a_thread_that_looks_at_an_end(pyr: Instance) -> None:
    slow, may_run = Slow(), threading.Event()
    pipe = Pipeline()
    pipe.read_from([1]).map(lambda _: may_run.wait(10)).write_to(processors.noop())
    slow.follow()
    execution = pyr.new_light_job(pipe).execute()
    slow.unfollow()
    may_run.set()
    assert slow.has_begun.wait(10)
    threading.Timer(0.05, slow.may_end.set).start()
    slow.settle()
    assert slow.ended == [execution]


def test_a_run_that_goes_on_when_nobody_follows_it_has_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A durable job, whose instance is closed."""
    events = tmp_path / "events"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(events))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    execution = Execution(
        Job(chain("on"), JobConfig(name="goes on"), False),
        run_callback=lambda call: call(),
        needs_this_thread=lambda: False,
    )
    with taking() as collector, prometheus(port=0) as endpoint, lineage():
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        with traces():
            begun(execution)
            execution.set_exception(PyriteError("the instance is closed"))
        found = scrape(endpoint.url)
    assert [found["pyrite_job_runs_total", "goes on", s] for s in ("completed", "failed")] == [0, 0]
    assert found["pyrite_job_running", "goes on"] == 0
    assert ("pyrite_job_duration_seconds", "goes on") not in found
    assert not collector.taken
    assert [json.loads(line)["eventType"] for line in events.read_text().splitlines()] == ["START"]
    assert not caplog.records
