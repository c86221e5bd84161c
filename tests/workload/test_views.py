"""What people see of a run: the error for failed jobs, the output of a running job."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from pyrite.errors import PyriteError
from pyrite.workload import JobsFailed, JobState, Workload
from pyrite.workload.views.failures import not_done, raise_for_failures
from tests.workload import commands


def row(job: str, state: JobState, error: str | None = None) -> dict[str, Any]:
    return {"job": job, "state": state, "error": error}


def test_a_run_without_failures_is_returned_and_one_with_failures_raises(tmp_path: Path) -> None:
    workload = Workload().add("good", commands.nothing)
    run = workload.run(workers=1, store=tmp_path / "s").wait()
    assert run.raise_for_failures() is run
    workload.add("bad", commands.fail).add("below", commands.nothing, after="bad")
    run = workload.run(workers=1, store=tmp_path / "s").wait()
    with pytest.raises(JobsFailed) as raised:
        run.raise_for_failures()
    assert isinstance(raised.value, PyriteError)
    assert [job["job"] for job in raised.value.jobs] == ["bad", "below"]
    message = str(raised.value)
    assert "2 of 3 jobs are not done:" in message
    assert "job 'bad' is FAILED: ValueError: on purpose" in message
    assert "job 'below' is BLOCKED: a job upstream of it failed" in message
    assert f"run: pyrite workload log {run.store} -- bad" in message


def test_at_most_ten_jobs_are_named_and_failures_come_first() -> None:
    rows = [row(f"b{n}", JobState.BLOCKED) for n in range(16)]
    rows.append(row("x", JobState.CRASHED, "it died"))
    with pytest.raises(JobsFailed, match=r"(?s)job 'x' is CRASHED.*job 'b8'.*and 7 others") as one:
        raise_for_failures(rows, Path("s"), has_ended=True)
    assert "b9" not in str(one.value)
    assert pickle.loads(pickle.dumps(one.value)).jobs == one.value.jobs


def test_jobs_that_may_still_run_count_only_when_the_run_has_ended() -> None:
    rows = [row("a", JobState.RUNNING), row("b", JobState.DONE), row("c", JobState.CANCELLED)]
    assert [r["job"] for r in not_done(rows, has_ended=False)] == ["c"]
    assert [r["job"] for r in not_done(rows, has_ended=True)] == ["a", "c"]
