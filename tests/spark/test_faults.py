"""Faults on Spark: workers killed, tasks that fail once, jobs cancelled. The output is exact, or
nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, Instance, JobCancelled, JobConfig, JobFailed, JobStatus, between
from pyrite import processors as p


def once(marker: Path, act: Any) -> Any:
    """A function that acts once in all processes together, when it meets item 500."""

    def step(n: int) -> int:
        if n == 500:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return n
            act()
        return n

    return step


def kill_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise RuntimeError("only once")


def job(first: Any, second: Any, sink: Any) -> DAG:
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(1000)))
    before = dag.vertex("before", p.map(first))
    after = dag.vertex("after", p.map(second))
    dag.edge(between(source, before)).edge(between(before, after).distributed().partitioned())
    dag.edge(between(after, dag.vertex("sink", sink)))
    return dag


def same(n: int) -> int:
    return n


@pytest.mark.parametrize("act", [kill_worker, fail])
@pytest.mark.parametrize("in_first_stage", [True, False])
def test_a_task_that_dies_once_leaves_an_exact_result(
    pyr: Instance, tmp_path: Path, act: Any, in_first_stage: bool
) -> None:
    step = once(tmp_path / "marker", act)
    first, second = (step, same) if in_first_stage else (same, step)
    execution = pyr.new_job(job(first, second, p.write_list("out")), JobConfig(members=2)).execute()
    execution.result(60)
    assert (tmp_path / "marker").exists()
    assert Counter(pyr.list("out")) == Counter(range(1000))
    assert (
        execution.metrics()["after"]["received"] == 1000
    )  # the attempt that failed does not count


@pytest.mark.parametrize("act", [kill_worker, fail])
def test_files_of_a_task_that_died_are_not_there(pyr: Instance, tmp_path: Path, act: Any) -> None:
    out = tmp_path / "out"
    pyr.new_job(
        job(same, once(tmp_path / "marker", act), p.write_files(out)), JobConfig(members=3)
    ).execute().result(60)
    assert (tmp_path / "marker").exists()
    files = sorted(path for path in out.iterdir() if path.name != ".pyrite-files")
    assert [path.name for path in files] == ["part-00000.txt", "part-00001.txt", "part-00002.txt"]
    lines = [line for path in files for line in path.read_text().split()]
    assert sorted(map(int, lines)) == list(range(1000))


def test_a_failed_job_leaves_no_file_and_nothing_in_collections(
    pyr: Instance, tmp_path: Path
) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(1000)))
    bad = dag.vertex("bad", p.map(lambda n: 1 // (999 - n)))
    dag.edge(between(source, bad)).edge(
        between(bad, dag.vertex("sink", p.write_files(tmp_path / "out")))
    )
    noted = dag.vertex("noted", p.read_items([1]))
    dag.edge(between(noted, dag.vertex("list", p.write_list("out"))))
    with pytest.raises(JobFailed, match="vertex 'bad'"):
        pyr.new_job(dag).execute().result(60)
    assert not (tmp_path / "out").exists()
    assert list(pyr.list("out")) == []


def test_a_target_that_cannot_be_written_is_known_before_the_work(
    pyr: Instance, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    worked = tmp_path / "worked"

    def work(n: int) -> int:
        worked.touch()
        return n

    with pytest.raises(JobFailed, match="vertex 'sink' cannot write to folder") as failed:
        pyr.new_job(job(work, same, p.write_files(tmp_path / "file" / "out"))).execute().result(60)
    assert failed.value.vertex == "sink"
    assert not worked.exists()


def test_cancel_takes_less_than_three_seconds_and_commits_nothing(
    pyr: Instance, tmp_path: Path
) -> None:
    started = tmp_path / "started"

    def slow(n: int) -> int:
        started.touch()
        threading.Event().wait(0.5)
        return n

    execution = pyr.new_job(job(slow, same, p.write_list("out")), JobConfig(members=2)).execute()
    deadline = time.monotonic() + 30
    while not started.exists():
        assert time.monotonic() < deadline
    assert execution.status is JobStatus.RUNNING
    assert execution.progress()[0][0] == "source + before"
    asked = time.monotonic()
    assert execution.cancel()
    with pytest.raises(JobCancelled):
        execution.result(10)
    assert time.monotonic() - asked < 3
    assert list(pyr.list("out")) == []
    pyr.new_job(job(same, same, p.write_list("out"))).execute().result(
        60
    )  # the session is still good
    assert len(pyr.list("out")) == 1000


def test_cancel_before_the_start_means_that_it_never_starts(pyr: Instance) -> None:
    execution = pyr.new_job(job(same, same, p.write_list("out"))).execute()
    execution.cancel()
    with pytest.raises(JobCancelled):
        execution.result(30)
    assert list(pyr.list("out")) == []
