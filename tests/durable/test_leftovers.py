"""What processes that were killed, and jobs that have ended, leave behind."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import pyrite
from pyrite import DAG, JobConfig, processors
from pyrite.durable.client.jobs import DurableJobs
from pyrite.durable.collections.collections import FolderCollections
from pyrite.durable.folder.locks import Lock
from pyrite.durable.hosts.places import closes_queues
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import JobNode, JobStatus
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.queues.queues import Message, Outgoing
from pyrite.durable.queues.sqlite import SqliteQueues
from pyrite.durable.store.opening import open_store
from pyrite.exchange.collected import Collected
from pyrite.exchange.temporary import job_folder
from pyrite.job import Job
from tests.durable.protocol.shapes import ONE


def long_ago(path: Path) -> None:
    os.utime(path, (time.time() - 3600,) * 2)


def test_the_files_of_killed_peers_go_when_the_folder_is_opened(tmp_path: Path) -> None:
    alive, living = tmp_path / "alive", Lock(tmp_path, "living")
    (alive / "killed").touch()
    (alive / "new").touch()
    long_ago(alive / "killed")
    long_ago(alive / "living")
    with pyrite.instance(durable=tmp_path, peers=1):
        names = set(os.listdir(alive))
    assert {"living", "new"} <= names
    assert "killed" not in names
    living.release()


def test_the_temporary_folder_of_a_killed_process_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    die = (
        "import os; from pyrite.exchange.temporary import job_folder\n"
        "with job_folder(): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", die], env={**os.environ, "TMPDIR": str(tmp_path)})
    (left,) = tmp_path.iterdir()
    long_ago(left)
    with job_folder() as living:
        long_ago(living)
        with job_folder() as second:
            assert set(tmp_path.iterdir()) == {living, second}
    assert list(tmp_path.iterdir()) == []


def test_the_mark_of_a_job_goes_with_its_queues(tmp_path: Path) -> None:
    collections = FolderCollections(tmp_path)
    added = [Collected("list", "l", [1])]
    assert collections.apply("job", added)
    assert not collections.apply("job", added)
    closes_queues(str(tmp_path))("job", True)
    assert collections.apply("job", added)
    collections.close()


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[DurableJobs]:
    """Without a coordinator and peers."""
    place = tmp_path / "durable"
    jobs = DurableJobs(
        partial(open_store, str(place)),
        partial(SqliteQueues, place),
        FolderCollections(place),
        run_callback=lambda call: call(),
    )
    yield jobs
    jobs.close()


@pytest.mark.parametrize("is_complete", [False, True])
def test_what_a_job_has_prepared_goes_with_its_queues_unless_it_is_complete(
    jobs: DurableJobs, tmp_path: Path, is_complete: bool
) -> None:
    dag, target = DAG(), tmp_path / "target"
    a = dag.vertex("a", processors.read_items([1]))
    dag.edge(pyrite.between(a, dag.vertex("b", processors.write_files(str(target)))))
    execution = jobs.execute(Job(dag, JobConfig(), False, "id", is_durable=True))
    attempt = target / f".pyrite-{execution.id}-b"
    assert attempt.is_dir()
    close = closes_queues(str(tmp_path / "durable"))
    for _ in range(2):
        close(execution.id, is_complete)
    assert attempt.exists() == is_complete


def test_an_execution_that_has_ended_is_not_kept(jobs: DurableJobs, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "durable"))
    store.create(paths.job("job"), JobNode(1, JobStatus.COMPLETE).text())
    execution = jobs.job("job")
    execution.result(10)
    assert jobs.job("job") is execution
    ended = weakref.ref(execution)
    del execution
    gc.collect()
    assert ended() is None
    jobs.job("job").result(10)
    store.close()


def test_the_file_of_the_queues_shrinks_when_a_job_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyrite.durable.folder.database.MOST_FREE_PAGES", 100)
    queues = SqliteQueues(tmp_path)
    task = ONE.tasks[0]
    message = Message(task.edges[0].name, bytes(1_000_000))
    many = [Outgoing(Part("big", task.name, 0), message)] * 20
    queues.open_job("small", ONE, (), code=b"small")
    queues.open_job("big", ONE, many, code=b"")
    queues.close_job("big")
    assert queues.code("small") == b"small"
    queues.close()  # the last connection writes everything to the file
    assert (tmp_path / "queues.sqlite").stat().st_size < 5_000_000
