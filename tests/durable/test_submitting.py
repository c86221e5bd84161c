"""While a client submits a job, a node says that it is alive."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import pyrite
from pyrite import DAG, JobConfig, processors
from pyrite.durable.client.desk import Desk
from pyrite.durable.client.jobs import DurableJobs
from pyrite.durable.collections.collections import FolderCollections
from pyrite.durable.protocol.tree import paths
from pyrite.durable.queues.sqlite import SqliteQueues
from pyrite.durable.store.opening import open_store
from pyrite.durable.store.store import SessionLost, Store
from pyrite.job import Job

NODE = paths.submitting("job")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(partial(open_store, str(tmp_path)))
    yield desk
    desk.close()


def test_a_job_is_known_as_being_submitted_before_it_has_queues(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    seen = []

    class Queues(SqliteQueues):
        def open_job(self, job: str, *arguments: object, **options: object) -> None:
            seen.append((self.jobs(), store.children("/submitting")))
            super().open_job(job, *arguments, **options)  # type: ignore[arg-type]

    jobs = DurableJobs(
        partial(open_store, str(tmp_path)),
        lambda: Queues(tmp_path),
        FolderCollections(tmp_path),
        run_callback=lambda call: call(),
    )
    dag = DAG()
    a = dag.vertex("a", processors.read_items([1]))
    dag.edge(pyrite.between(a, dag.vertex("b", processors.write_list("l"))))
    execution = jobs.execute(Job(dag, JobConfig(), False, "id", is_durable=True))
    assert seen == [([], [execution.id])]
    assert store.children("/submitting") == []
    jobs.close()
    store.close()


def test_a_generator_that_raises_is_named_with_its_vertex_and_line(tmp_path: Path) -> None:
    pipe = pyrite.Pipeline()
    pipe.read_from(1 // n for n in (1, 0)).write_to(processors.write_list("l"))
    words = r"vertex 'read_items': ZeroDivisionError.*added in test_submitting.py line \d+"
    jobs = DurableJobs(
        partial(open_store, str(tmp_path)),
        lambda: SqliteQueues(tmp_path),
        FolderCollections(tmp_path),
        run_callback=lambda call: call(),
    )
    with pytest.raises(pyrite.JobFailed, match=words):
        jobs.execute(Job(pipe.to_dag(), JobConfig(), False, "id", is_durable=True))
    jobs.close()


def test_a_node_that_is_held_is_there_again_in_a_new_session(desk: Desk) -> None:
    losses = [SessionLost("lost")]

    def get(store: Store) -> str | None:
        if losses:
            raise losses.pop()
        return store.get(NODE)

    with desk.holding(NODE):
        assert desk.ask(get) is not None
        assert losses == []
    assert desk.ask(get) is None
