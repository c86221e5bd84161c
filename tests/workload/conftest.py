"""What the tests of workloads share: a watch on processes left behind, and runs made short."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyrite.workload import JobState, Run

SHARED = ("resource_tracker", "java", "pyspark.daemon")
"""Processes that serve several tests: of Python's own pools, and of a Spark session that a module
shares."""


def processes_of(store: Path) -> list[tuple[int, str]]:
    """The processes whose command line, or folder of work, names this folder."""
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


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "it did not come about in time"
        time.sleep(0.005)


def states(run: Run) -> dict[str, JobState]:
    return {row["job"]: row["state"] for row in run.table()}


def row_of(run: Run, job: str) -> dict[str, object]:
    return next(row for row in run.table() if row["job"] == job)


@pytest.fixture(autouse=True)
def no_process_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every process that a test starts, whatever it is, inherits the mark."""
    monkeypatch.setenv("PYRITE_TEST", str(tmp_path))
    yield
    wait_until(lambda: not processes_of(tmp_path), 5)
