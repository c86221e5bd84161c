"""The session of an instance, with a start that the test holds in its hand."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import pyrite
from pyrite import DAG, JobCancelled, JobFailed, between
from pyrite import processors as p
from pyrite.errors import PyriteError
from pyrite.spark import liveness
from pyrite.spark.session import LazySession


class FakeSpark:
    """As much of a session as an instance looks at before a job."""

    def __init__(self) -> None:
        self.stopped = False
        self.sparkContext = self._jsc = self

    def sc(self) -> FakeSpark:
        return self

    def isStopped(self) -> bool:
        return self.stopped

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


def test_a_session_that_was_stopped_by_others_is_started_again(start: Start) -> None:
    start.may_end.set()
    with pyrite.instance() as pyr:
        pyr.spark().stop()
        start.outcome = FakeSpark()
        spark: Any = pyr.spark()
        assert spark is start.outcome
    assert start.count == 2
    assert start.outcome.stopped


def test_a_given_session_that_was_stopped_is_not_started_again(start: Start) -> None:
    given: Any = FakeSpark()
    with pyrite.instance(spark=given) as pyr:
        given.stop()
        with pytest.raises(PyriteError, match=r"given to this instance was stopped; make a new"):
            pyr.spark()
        failed = pyr.new_job(dag()).execute().exception(10)
        assert isinstance(failed, JobFailed)
        assert "make a new session" in str(failed)
    assert start.count == 0


@pytest.mark.parametrize(
    "master", ["locl[2]", "local[0]", "local[x]", "spark://host", "http://host:1", "yarn-cluster"]
)
def test_an_address_that_is_no_master_is_refused_at_once(master: str) -> None:
    with pytest.raises(PyriteError, match="is not the address of a Spark master"):
        pyrite.instance(spark_master=master)


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[*]",
        "local[2, 4]",
        "local-cluster[2,1,1024]",
        "spark://one:7077,two:7077",
        "yarn",
        "k8s://https://host:443",
        "sc://host",
    ],
)
def test_the_masters_of_spark_are_known(master: str) -> None:
    pyrite.instance(spark_master=master).close()


@pytest.mark.parametrize("kind", ["spark", "sc"])
def test_an_address_where_nobody_answers_is_named_within_seconds(kind: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # and does not listen
        master = f"{kind}://127.0.0.1:{probe.getsockname()[1]}"
        before = time.monotonic()
        with pyrite.instance(spark_master=master) as pyr:
            failed = pyr.new_job(dag()).execute().exception(30)
        assert isinstance(failed, JobFailed)
        assert master in str(failed)
        assert "check the address" in str(failed)
        assert time.monotonic() - before < 15
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


def test_dropping_a_session_leaves_one_that_is_starting_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cleared: list[bool] = []
    monkeypatch.setattr(liveness, "forget_what_ended", lambda: cleared.append(True))
    with liveness.spark_of_process.starting:
        liveness.drop(object())
    assert not cleared
    liveness.drop(object())
    assert cleared
