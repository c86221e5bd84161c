"""A program that ends Spark sessions in every way, during and between jobs, and prints the name of
each check that passed."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import pyrite
from pyrite import Execution, Instance, JobConfig, JobFailed, PyriteError
from pyrite import processors as p
from tests.engine.test_fusion import line
from tests.spark.checking import run_checks
from tests.test_forks import in_child

MASTER = "local[2, 4]"
CONF = {"spark.ui.enabled": "false"}


def ours() -> Instance:
    return pyrite.instance(spark_master=MASTER, spark_conf=CONF)


def users() -> SparkSession:
    return SparkSession.builder.master(MASTER).config(map=dict(CONF)).getOrCreate()


def works(pyr: Instance) -> bool:
    pyr.list("out").clear()
    pyr.new_job(line(p.read_items([1, 2]), p.write_list("out"))).execute().result(60)
    return sorted(pyr.list("out")) == [1, 2]


@contextmanager
def running(pyr: Instance) -> Iterator[Execution]:
    """A job whose task is running, and would run for a minute."""
    with tempfile.TemporaryDirectory() as folder:
        started = Path(folder) / "started"

        def slow(n: int) -> int:
            started.touch()
            time.sleep(60)
            return n

        dag = line(p.read_items([1, 2]), p.map(slow))
        execution = pyr.new_job(dag, JobConfig(name="slow", members=1)).execute()
        while not started.exists():
            assert not execution.done(), execution.exception()
            time.sleep(0.02)  # the task is in another process
        yield execution


def failure(execution: Execution) -> str:
    before = time.monotonic()
    error = execution.exception(60)
    assert isinstance(error, JobFailed)
    assert time.monotonic() - before < 20
    assert len(str(error)) < 500
    return str(error)


def java() -> int:
    gateway: Any = SparkContext._gateway
    return int(gateway.proc.pid)


def stopped_between_jobs() -> None:
    with ours() as pyr:
        first = pyr.spark()
        first.stop()
        assert works(pyr)
        assert pyr.spark() is not first


def stopped_in_java_between_jobs() -> None:
    with ours() as pyr:
        assert works(pyr)
        context: Any = pyr.spark().sparkContext
        context._jsc.sc().stop()
        assert works(pyr)


def stopped_in_mid_job() -> None:
    with ours() as pyr:
        with running(pyr) as execution:
            assert execution.progress()
            pyr.spark().stop()
            said = failure(execution)
        assert said == (
            "job 'slow' failed: the Spark session of this instance was stopped while the job ran; "
            "the next job starts a new one"
        ), said
        assert execution.progress() == []
        assert works(pyr)


def java_killed_in_mid_job() -> None:
    with ours() as pyr:
        with running(pyr) as execution:
            os.kill(java(), signal.SIGKILL)
            said = failure(execution)
        assert "lost its Java process (it was killed by signal 9) while the job ran" in said, said
        assert works(pyr)


def java_killed_between_jobs() -> None:
    with ours() as pyr:
        assert works(pyr)
        os.kill(java(), signal.SIGKILL)
        assert works(pyr)


def fork_with_spark() -> None:
    with ours() as pyr:
        assert works(pyr)
        with ours() as other:
            for said in (in_child(lambda: works(pyr)), in_child(lambda: works(other))):
                assert isinstance(said, JobFailed)
                assert f"Spark was started in process {os.getpid()}, which this" in str(said)
        assert in_child(pyr.close) is None
        assert works(pyr)


def closed_after_java_was_killed() -> None:
    pyr = ours()
    assert works(pyr)
    os.kill(java(), signal.SIGKILL)
    pyr.close()
    with ours() as another:
        assert works(another)


def given_session() -> None:
    spark = users()
    with pyrite.instance(spark=spark) as pyr:
        assert works(pyr)
        with running(pyr) as execution:
            spark.stop()
            assert "that was given to this instance was stopped while" in failure(execution)
        said = failure(pyr.new_job(line(p.read_items([1]))).execute())
        assert "given to this instance was stopped; make a new session, and another" in said, said
    second = users()
    with pyrite.instance(spark=second) as pyr:
        assert works(pyr)
    second.stop()


def users_next_session_is_left_alone() -> None:
    """Closing an instance whose session was stopped must not stop a session that started later."""
    pyr = ours()
    pyr.spark().stop()
    next_one = users()
    pyr.close()
    assert next_one.range(3).count() == 3
    assert SparkSession.active() is next_one
    with ours() as another, pytest.raises(PyriteError, match="already has a Spark session"):
        another.spark()
    next_one.stop()


def start_that_fails() -> None:
    """A start that fails, or that has a wrong setting, leaves no session behind."""
    for name in ("spark.driver.port", "spark.sql.shuffle.partitions"):
        end_java()
        with pyrite.instance(spark_master=MASTER, spark_conf={**CONF, name: "many"}) as pyr:
            said = failure(pyr.new_job(line(p.read_items([1]))).execute())
            assert name in said, said
        with ours() as pyr:
            assert works(pyr)


def settings_of_an_earlier_session() -> None:
    end_java()
    with pyrite.instance(
        spark_master=MASTER, spark_conf={**CONF, "spark.sql.shuffle.partitions": "7"}
    ) as pyr:
        assert pyr.spark().conf.get("spark.sql.shuffle.partitions") == "7"
    with ours() as pyr:
        assert pyr.spark().conf.get("spark.sql.shuffle.partitions") == "200"


def end_java() -> None:
    """Ends the Java process, so that the next session starts a new one."""
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway.proc.kill()
        gateway.proc.wait()


CHECKS: list[Callable[[], None]] = [
    stopped_in_mid_job,
    java_killed_in_mid_job,
    fork_with_spark,
    given_session,
]
LONG_CHECKS: list[Callable[[], None]] = [
    stopped_between_jobs,
    stopped_in_java_between_jobs,
    java_killed_between_jobs,
    closed_after_java_was_killed,
    users_next_session_is_left_alone,
    start_that_fails,
    settings_of_an_earlier_session,
]
"""Each starts one or more sessions, which takes several seconds."""


if __name__ == "__main__":
    run_checks(LONG_CHECKS if sys.argv[1:] == ["long"] else CHECKS)
