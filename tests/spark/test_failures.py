"""Errors of Spark become one or two sentences that say where, why, and what to do."""

from __future__ import annotations

import ctypes
import os
import pickle
import re
import signal
from typing import Any

import pytest

from pyrite import DAG, Instance, JobConfig, JobFailed, between
from pyrite import processors as p
from pyrite.engine.failure import Failed
from pyrite.spark.failures import SparkError, cause_in, explained, in_short, stage_number

JAVA_LINES = "\n".join(f"\tat org.apache.spark.Some.thing(Some.scala:{n})" for n in range(60))
LOST_TASK = (
    "An error occurred while calling o84.getResult.\n"
    ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
    f"{JAVA_LINES}\n"
    "Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage "
    "3.0 failed 4 times, most recent failure: Lost task 1.3 in stage 3.0 (TID 9) (host): "
)


def report(what: str) -> str:
    return f"{LOST_TASK}{what}\n{JAVA_LINES}\n\nDriver stacktrace:\n{JAVA_LINES}\nCaused by: {what}"


CRASHED = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
REPORTS = {
    "segmentation fault": (
        report(
            f"{CRASHED}: Fatal Python error: Segmentation fault\n\n"
            "Thread 0x00007f52a0000000 (most recent call first):\n"
            '  File "/lib/threading.py", line 327 in wait\n\n'
            "Current thread 0x00007f52af403b80 (most recent call first):\n"
            '  File "/lib/ctypes/__init__.py", line 519 in string_at\n'
            '  File "/home/me/job.py", line 16 in parse\n'
            '  File "<pyrite loop>", line 5 in run\n'
            '  File "/lib/pyspark/worker.py", line 1955 in func\n'
        ),
        r"a Python worker process of stage 'a \+ b' died, 4 times in a row, the last time of: "
        r"Segmentation fault, at /lib/ctypes/__init__.py line 519 in string_at, called by "
        r"/home/me/job.py line 16 in parse\. Look for a native library",
    ),
    "died in silence": (
        report(f"{CRASHED}"),
        r"process of stage 'a \+ b' died, 4 times in a row without a message\. .*memory limits.*"
        r"stderr; it was no crash such as a segmentation fault",
    ),
    "no fault handler": (
        report(f"{CRASHED}. Consider setting 'spark.python.worker.faulthandler.enabled' to 'true'"),
        r"set spark.python.worker.faulthandler.enabled=true and",
    ),
    "results too large": (
        report(
            "Total size of serialized results of 2 tasks (10.1 MiB) is bigger than "
            "spark.driver.maxResultSize (1024.0 KiB)"
        ),
        r"send to the driver \(10.1 MiB\) is larger than spark.driver.maxResultSize "
        r"\(1024.0 KiB\)\. .*write_files",
    ),
    "executor lost": (
        report(
            "ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: "
            "Command exited with code 137"
        ),
        r"executor 2 was lost while it ran stage 'a \+ b': Command exited with code 137\. Look at",
    ),
    "disk full": (
        report("java.io.IOException: No space left on device"),
        r"a disk is full .* stage 'a \+ b'.*spark.local.dir",
    ),
    "java out of memory": (
        report("java.lang.OutOfMemoryError: Java heap space"),
        r"ran out of memory \(: Java heap space\) in stage|ran out of memory \(Java heap space\)",
    ),
    "no python": (
        report('java.io.IOException: Cannot run program "python3": error=2, No such file'),
        r'cannot start the Python program "python3"\. .*PYSPARK_PYTHON',
    ),
    "pyrite is not installed": (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        "  File x\nModuleNotFoundError: No module named 'pyrite'\n SQLSTATE: 38000\n\n\tat x",
        r"raised ModuleNotFoundError: No module named 'pyrite'\. Install pyrite",
    ),
    "anything else": (
        report("org.apache.spark.shuffle.FetchFailedException: Connection refused to 10.0.0.7"),
        r"^Spark reports for stage 'a \+ b': FetchFailedException: Connection refused to 10.0.0.7$",
    ),
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_of_spark_is_told_in_short(name: str) -> None:
    text, pattern = REPORTS[name]
    sentence = explained(text, "stage 'a + b'")
    assert re.search(pattern, sentence), sentence
    assert len(sentence) < 700
    assert "\n" not in sentence


def test_the_stage_and_the_cause_are_found_in_a_report() -> None:
    assert stage_number(REPORTS["disk full"][0]) == 3
    assert stage_number("nothing about it") is None
    assert cause_in("[TABLE_NOT_FOUND] no such table x\n\tat java") == (
        "[TABLE_NOT_FOUND] no such table x"
    )
    assert cause_in("") == "an error without a text"


def test_a_spark_error_pickles_with_the_whole_report() -> None:
    restored = pickle.loads(pickle.dumps(SparkError("in short", "the whole")))
    assert (str(restored), restored.trace) == ("in short", "the whole")


class FromSpark(Exception):
    """As PySpark raises them."""

    __module__ = "pyspark.errors"


def test_a_long_report_about_a_known_vertex_is_told_in_short() -> None:
    failed = in_short(Failed(FromSpark(REPORTS["disk full"][0]), vertex="saves"))
    assert failed.vertex == "saves"
    assert isinstance(failed.error, SparkError)
    assert len(str(failed.error)) < 400


@pytest.mark.parametrize("error", [FromSpark("table x exists"), ValueError("x" * 5000)])
def test_a_short_report_and_errors_of_others_stay_as_they_are(error: Exception) -> None:
    assert in_short(Failed(error, vertex="saves")).error is error


def two_stages(first: Any, second: Any) -> DAG:
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(10)))
    before = dag.vertex("before", p.map(first))
    after = dag.vertex("after", p.map(second))
    dag.edge(between(source, before)).edge(between(before, after).distributed().partitioned())
    return dag


def same(n: int) -> int:
    return n


def exits(n: int) -> int:
    os._exit(3)


def crashes(n: int) -> int:
    return len(ctypes.string_at(0))


def is_killed(n: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return n


@pytest.mark.parametrize(
    ("first", "second", "says", "vertex"),
    [
        (exits, same, r"process of stage 'source \+ before' died, 4 times in a row without", None),
        pytest.param(
            *(same, exits, r"process of stage 'after' died, 4 times in a row without", "after"),
            marks=pytest.mark.soak,
        ),
        pytest.param(
            *(is_killed, same, r"process of stage 'source \+ before' died, 4 times", None),
            marks=pytest.mark.soak,
        ),
        (same, crashes, r"of: Segmentation fault, at .* in string_at.* in crashes", "after"),
    ],
)
def test_a_worker_that_dies_every_time_is_told_with_its_stage(
    pyr: Instance, first: Any, second: Any, says: str, vertex: str | None
) -> None:
    with pytest.raises(JobFailed, match=says) as failed:
        pyr.new_job(two_stages(first, second), JobConfig(members=2)).execute().result(100)
    assert failed.value.vertex == vertex
    assert len(str(failed.value)) < 700
    assert isinstance(failed.value.__cause__, SparkError)
    assert "Python worker exited unexpectedly" in failed.value.__cause__.trace


@pytest.mark.parametrize("error", [StopIteration, GeneratorExit, SystemExit])
def test_what_a_function_raises_in_a_task_is_blamed_on_its_vertex_and_item(
    pyr: Instance, error: Any
) -> None:
    def bad(n: int) -> int:
        if n == 7:
            raise error
        return n

    dag = DAG()
    flat = dag.vertex("flat", p.flat_map(lambda n: [n]))
    dag.edge(between(dag.vertex("source", p.read_items(range(10))), flat))
    dag.edge(between(flat, dag.vertex("bad", p.map(bad))))
    with pytest.raises(JobFailed) as failed:
        pyr.new_job(dag, JobConfig(members=1)).execute().result(100)
    assert (failed.value.vertex, failed.value.item) == ("bad", 7)
    assert type(failed.value.__cause__) is error
