"""The session of an instance, with a start that the test holds in its hand."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import pyrite
from pyrite import DAG, JobCancelled, JobFailed, between
from pyrite import processors as p
from pyrite.errors import PyriteError
from pyrite.spark.session import LazySession


class FakeSpark:
    def __init__(self) -> None:
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


class Start:
    """Stands for the start of Spark: it ends when it is let, with a session or an error."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.outcome: Any = FakeSpark()
        self.count = 0

    def __call__(self, session: LazySession) -> Any:
        self.count += 1
        self.begun.set()
        assert self.may_end.wait(20)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    start = Start()
    monkeypatch.setattr(LazySession, "_start", lambda session: start(session))
    yield start
    start.may_end.set()


def dag() -> DAG:
    dag = DAG()
    return dag.edge(
        between(dag.vertex("a", p.read_items([1])), dag.vertex("b", p.write_list("out")))
    )


def test_a_job_that_is_cancelled_while_spark_starts_does_not_wait_for_it(start: Start) -> None:
    with pyrite.instance() as pyr:
        execution = pyr.new_job(dag()).execute()
        assert start.begun.wait(10)
        execution.cancel()
        with pytest.raises(JobCancelled):
            execution.result(10)
        assert not start.may_end.is_set()
        start.may_end.set()
        spark: Any = pyr.spark()  # for those who come later
        assert spark is start.outcome
    assert start.count == 1
    assert start.outcome.stopped


def test_an_instance_that_is_closed_while_spark_starts_stops_it(start: Start) -> None:
    pyr = pyrite.instance(start_spark=True)
    assert start.begun.wait(10)
    closing = threading.Thread(target=pyr.close)
    closing.start()
    start.may_end.set()
    closing.join(10)
    assert start.outcome.stopped
    with pytest.raises(PyriteError, match="closed"):
        pyr.spark()


def test_a_start_that_failed_is_tried_again(start: Start) -> None:
    start.outcome = PyriteError("no Java today")
    start.may_end.set()
    with pyrite.instance() as pyr:
        failed = pyr.new_job(dag()).execute().exception(10)
        assert isinstance(failed, JobFailed)
        assert "no Java today" in str(failed)
        start.outcome = FakeSpark()
        assert pyr.spark() is start.outcome
    assert start.count == 2
