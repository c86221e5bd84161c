"""The options of single jobs, for persistent, launched and transient workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pyrite.workload import InvalidWorkload, JobState, RetryWait, Run, Workload
from tests.workload import commands
from tests.workload.conftest import row_of

Start = Callable[[Workload], Run]


def by_launcher(function: Any, posts: Any) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(function, posts))


KINDS: dict[str, dict[str, Any]] = {
    "persistent": {},
    "launched": {"launcher": by_launcher},
    "transient": {"kind": "transient"},
}


@pytest.fixture(params=KINDS)
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Start:
    def run(workload: Workload) -> Run:
        options = {"workers": 2, "store": tmp_path / "run", **KINDS[request.param]}
        return workload.run(**options).wait(60)

    return run


def note_time_and_fail_until(path: str, times: int) -> None:
    commands.note(path, str(time.time()))
    if len(commands.lines(path)) <= times:
        raise RuntimeError("not yet")


def problems_of(**options: Any) -> list[str]:
    with pytest.raises(InvalidWorkload) as caught:
        Workload().add("a", commands.nothing, **options).validate()
    return caught.value.problems


def test_a_job_waits_before_each_retry(tmp_path: Path, start: Start) -> None:
    times = str(tmp_path / "times")
    wait = RetryWait(0.2, jitter=0)
    run = start(
        Workload().add("a", note_time_and_fail_until, args=[times, 2], retries=2, retry_wait=wait)
    )
    assert row_of(run, "a")["state"] is JobState.DONE
    first, second, third = map(float, commands.lines(times))
    assert second - first >= 0.2
    assert third - second >= 0.4


@pytest.mark.parametrize("value", [-1, "1", True, float("nan"), {"first": 1, "speed": 2}])
def test_a_wait_that_is_none_is_refused(value: Any) -> None:
    assert problems_of(retry_wait=value)[0].startswith("job 'a' has retry_wait=")
    with pytest.raises(ValueError, match="growth must be a number, 1 or more"):
        RetryWait(growth=0.5)


def test_tables_have_waits() -> None:
    rows = [
        {"job": "a", "command": "math:sqrt", "args": [1.0], "retry_wait": 2.5},
        {"job": "b", "command": "math:sqrt", "args": [1.0], "retry_wait": None},
    ]
    for table in (rows, pd.DataFrame(rows)):
        workload = Workload.from_table(table)
        workload.validate()
        assert [job.retry_wait for job in workload.jobs] == [2.5, None]
