"""Says in a sentence or two what an error of Spark means: Spark itself reports a Java trace of a
hundred lines, with the cause in the middle."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyrite.engine.failure import Failed
from pyrite.errors import PyriteError
from pyrite.functions import message_of, shorten_text

LONGEST_CAUSE = 400


class SparkError(PyriteError):
    """What Spark reported, in short. `trace` is the whole report."""

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message)
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return SparkError, (str(self), self.trace)


def is_from_spark(error: BaseException) -> bool:
    """Whether PySpark raised an error, or one of the libraries that it talks to Spark with."""
    return type(error).__module__.split(".")[0] in ("pyspark", "py4j", "grpc")


def text_of(error: BaseException) -> str:
    """The whole text of an error and of its causes. Py4J asks Java for it, which may be gone."""
    try:
        text = str(error)
    except Exception:
        text = message_of(error)
    cause = error.__cause__ or getattr(error, "_cause", None)
    if not isinstance(cause, BaseException):
        return text
    return f"{text}\nCaused by: {type(cause).__module__}.{type(cause).__name__}: {text_of(cause)}"


def stage_number(report: str) -> int | None:
    """Spark's number of the stage that failed, if the report says it.

    >>> stage_number("Job aborted: Task 0 in stage 12.0 failed 4 times, most recent failure: ...")
    12
    """
    found = re.search(r"in stage (\d+)\.\d+", report)
    return int(found.group(1)) if found else None


def was_stopped(report: str) -> bool:
    """Whether a report says that the session was stopped."""
    return "SparkContext was shut down" in report or "stopped SparkContext" in report


def explained(report: str, stage: str | None) -> str:
    """What a report of Spark means, and what to do. `stage` names the stage that failed, if it is
    known."""
    for pattern, explain in _KNOWN:
        found = re.search(pattern, report, re.MULTILINE)
        if found is not None:
            return explain(found, stage or "a stage of the job", report)
    where = f" for {stage}" if stage is not None else ""
    return f"Spark reports{where}: {shorten_text(cause_in(report), LONGEST_CAUSE)}"


def in_short(failed: Failed) -> Failed:
    """A failure that says which vertex called Spark, as when a table is saved, without the Java
    trace if Spark's error has one."""
    report = text_of(failed.error)
    if not is_from_spark(failed.error) or len(report) <= 2 * LONGEST_CAUSE:
        return failed
    return replace(failed, error=SparkError(explained(report, None), report))


def cause_in(report: str) -> str:
    """The innermost cause that says anything.

    >>> cause_in("An error occurred.\\n: a.B: outer\\n\\tat x\\nCaused by: a.C: inner\\n\\tat y")
    'C: inner'
    """
    causes = re.findall(r"^(?:: |Caused by: )(?:[\w$]+\.)+([\w$]+): (\S.*)$", report, re.MULTILINE)
    if causes:
        return ": ".join(causes[-1])
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    before_trace = [line for line in lines if not line.startswith("at ")]
    return " ".join(before_trace[:3]) or "an error without a text"


def _died(found: re.Match[str], stage: str, report: str) -> str:
    tries = re.search(r"failed (\d+) times, most recent failure", report)
    times = f", {tries.group(1)} times in a row" if tries and tries.group(1) != "1" else ""
    fatal = re.search(r"Fatal Python error: (.*)", report)
    start = f"a Python worker process of {stage} died{times}"
    if fatal is not None:
        return (
            f"{start}, the last time of: {fatal.group(1)}{_crashed_at(report)}. Look for a native "
            "library that is used there"
        )
    hint = (
        "; set spark.python.worker.faulthandler.enabled=true and "
        "spark.sql.execution.pyspark.udf.faulthandler.enabled=true to see crashes of native "
        "libraries"
        if "faulthandler.enabled" in report
        else "; it was no crash such as a segmentation fault, which would be reported here"
    )
    return (
        f"{start} without a message. os._exit(), kill -9 and the system's out-of-memory killer end "
        "a process like this. Look at what the functions of these vertices call, at the memory "
        f"limits of the executor and of its container, and at the executor's stderr{hint}"
    )


def _crashed_at(report: str) -> str:
    """The lines of the user's code that the fault handler shows, innermost first. It shows all
    threads; the one that crashed is the current one."""
    _, _, crashed = report.rpartition("Current thread 0x")
    crashed, _, _ = crashed.partition("\nThread 0x")
    frames = re.findall(r'^  File "(.*)", line (\d+) in (.*)$', crashed, re.MULTILINE)
    users = []
    for file, line, function in frames:
        if file == "<pyrite loop>" or "/pyrite/" in file or "/pyspark/" in file:
            break
        users.append(f"{file} line {line} in {function}")
    return f", at {', called by '.join(users[:4])}" if users else ""


def _too_large(found: re.Match[str], stage: str, report: str) -> str:
    return (
        f"what the tasks send to the driver ({found.group(1)}) is larger than "
        f"spark.driver.maxResultSize ({found.group(2)}). write_list and write_map bring all their "
        "items to the driver: write large results with write_files or write_spark, or raise "
        "spark.driver.maxResultSize"
    )


def _executor_lost(found: re.Match[str], stage: str, report: str) -> str:
    return (
        f"executor {found.group(1)} was lost while it ran {stage}: "
        f"{shorten_text(found.group(2).strip(), LONGEST_CAUSE)}. Look at the log of that executor; "
        "often it needs more memory (spark.executor.memory, spark.executor.memoryOverhead), or its "
        "host went away"
    )


def _disk_full(found: re.Match[str], stage: str, report: str) -> str:
    return (
        f"a disk is full (No space left on device) on a host that ran {stage}. Spark keeps the "
        "data that it shuffles and spills in spark.local.dir (default: /tmp): make room there, or "
        "set spark.local.dir to a larger disk"
    )


def _out_of_memory(found: re.Match[str], stage: str, report: str) -> str:
    return (
        f"a Java process of Spark ran out of memory ({found.group(1).strip()}) in {stage}. Raise "
        "spark.executor.memory, or spark.driver.memory if it was the driver's, or use more members"
    )


def _no_python(found: re.Match[str], stage: str, report: str) -> str:
    return (
        f"an executor cannot start the Python program {found.group(1)}. Install Python there, or "
        "set PYSPARK_PYTHON, or spark.pyspark.python, to where it is"
    )


def _raised(found: re.Match[str], stage: str, report: str) -> str:
    """A worker raised outside of the functions of a job; the last line of its trace says what."""
    trace = re.split(r"\n\s*\n|\n\tat ", report[found.end() :])[0]
    lines = [line.strip() for line in trace.splitlines()]
    said = [line for line in lines if line and not line.startswith("SQLSTATE")]
    what = shorten_text(said[-1], LONGEST_CAUSE) if said else "an exception"
    advice = (
        ". Install pyrite, with all that it depends on, in the Python that the executors use "
        "(PYSPARK_PYTHON, spark.pyspark.python)"
        if "No module named" in what
        else ""
    )
    return f"a Python worker process of {stage} raised {what}{advice}"


_Explain = Callable[["re.Match[str]", str, str], str]

_KNOWN: tuple[tuple[str, _Explain], ...] = (
    (r"Python worker exited unexpectedly", _died),
    (
        r"Total size of serialized results of \d+ tasks? \((.*?)\) is bigger than "
        r"(?:local)?spark\.driver\.maxResultSize \((.*?)\)",
        _too_large,
    ),
    (r"ExecutorLostFailure \(executor (\S+) .*?Reason: (.*)", _executor_lost),
    (r"No space left on device", _disk_full),
    (r"java\.lang\.OutOfMemoryError(.*)", _out_of_memory),
    (r"Cannot run program (\S+?):? ", _no_python),
    (r"exception was thrown from the Python worker.*\n", _raised),
)
