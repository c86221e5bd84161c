"""Shared by the tests of workloads: a check that no process is left behind, and short functions for
the table of a run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyrite.workload import JobState, Run

SHARED = ("resource_tracker", "java", "pyspark.daemon")
"""Processes that serve several tests: the resource tracker of Python's pools, and the processes of
a Spark session that a test module shares."""


def processes_of(store: Path) -> list[tuple[int, str]]:
    """The processes whose command line or environment contains this folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = (
                Path(f"/proc/{pid}/cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
            )
            environment = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if any(name in command for name in SHARED):
            continue
        if int(pid) != os.getpid() and (
            str(store) in command or f"PYRITE_TEST={store}" in environment
        ):
            found.append((int(pid), command[:200]))
    return found


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return status not in "ZX"


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "the condition did not become true in time"
        time.sleep(0.005)


def states(run: Run) -> dict[str, JobState]:
    return {row["job"]: row["state"] for row in run.table()}


def row_of(run: Run, job: str) -> dict[str, object]:
    return next(row for row in run.table() if row["job"] == job)


@pytest.fixture(autouse=True)
def no_process_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every process that a test starts inherits the environment variable, and is found by it."""
    monkeypatch.setenv("PYRITE_TEST", str(tmp_path))
    yield
    wait_until(lambda: not processes_of(tmp_path), 5)
