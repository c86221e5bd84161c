"""What people see of durable jobs and of those that run them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from pyrite import DAG, between
from pyrite import processors as p
from pyrite.durable.client.shape import MOST_CHARACTERS, Shape, ShapeVertex
from pyrite.durable.client.watching import cancel_job, deployment_view, job_view
from pyrite.durable.hosts.watching import Watcher
from pyrite.durable.queues.sqlite import SqliteQueues
from pyrite.durable.store.sqlite import SqliteStore
from pyrite.errors import JobCancelled, PyriteError
from pyrite.job import Execution
from pyrite.watching.views import RunView
from tests.durable.threads import Threads, running

GATE = threading.Event()
REACHED = threading.Event()


def hold(item: int) -> int:
    REACHED.set()
    assert GATE.wait(20)
    return item


def refuse(item: int) -> int:
    raise ValueError(f"{item} is not welcome")


def doubled(item: int) -> int:
    return 2 * item


@pytest.fixture
def closed_gate() -> Iterator[None]:
    GATE.clear()
    REACHED.clear()
    yield
    GATE.set()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path)
    yield store
    store.close()


def dag_of(step: Callable[[int], int], items: int = 10) -> DAG:
    dag = DAG()
    read = dag.vertex("read", p.read_items(range(items)))
    work = dag.vertex("work", p.map(step))
    write = dag.vertex("write", p.write_list("out"))
    return dag.edge(between(read, work).distributed()).edge(between(work, write))


def held(threads: Threads) -> Execution:
    execution = threads.execute(dag_of(hold), name="held", members=2)
    assert REACHED.wait(20)
    return execution


def test_a_job_of_another_process_is_seen_while_it_runs(
    tmp_path: Path, store: SqliteStore, closed_gate: None
) -> None:
    with running(tmp_path, peers=2) as threads:
        execution = held(threads)
        view = job_view(store, execution.id)
        GATE.set()
        execution.result(20)
    assert (view.id, view.name, view.kind, view.state) == (
        execution.id,
        "held",
        "durable",
        "running",
    )
    assert [vertex.name for vertex in view.vertices] == ["read", "work", "write"]
    assert view.vertices[1].step.startswith("Map")
    assert [(e.source, e.destination) for e in view.edges] == [("read", "work"), ("work", "write")]
    assert [stage.label for stage in view.stages][-1] == "completion"
    assert sum(stage.done for stage in view.stages) < sum(stage.total for stage in view.stages)
    assert view.members
    assert view.ended is None
    assert view.pid > 0
    assert abs(view.submitted - time.time()) < 60
    assert RunView.from_json(json.loads(json.dumps(view.to_json()))) == view


def test_an_execution_has_the_metrics_of_a_job_that_had_ended_when_its_instance_was_closed(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as threads:
        execution = threads.execute(dag_of(doubled), members=2)
        execution.result(20)
    assert execution.metrics()["work"]["received"] == 10


def test_a_completed_job_keeps_its_shape_metrics_and_times(
    tmp_path: Path, store: SqliteStore
) -> None:
    with running(tmp_path) as threads:
        execution = threads.execute(dag_of(doubled), members=2)
        execution.result(20)
    view = job_view(store, execution.id)
    assert (view.state, view.name) == ("completed", "read … write")
    assert (view.items_in, view.items_out) == (10, 10)
    assert {stage.done == stage.total for stage in view.stages} == {True}
    assert view.ended is not None
    assert view.submitted <= view.ended <= time.time()
    assert execution.ended == view.ended


def test_a_failed_job_names_its_vertex_and_item(tmp_path: Path, store: SqliteStore) -> None:
    with running(tmp_path) as threads:
        execution = threads.execute(dag_of(refuse), members=1, tries=1)
        assert execution.exception(20) is not None
    view = job_view(store, execution.id)
    assert view.state == "failed"
    assert view.failure is not None
    assert view.failure.vertex == "work"
    assert "is not welcome" in view.failure.message
    assert {v.name: v.state for v in view.vertices}["work"] == "failed"


def test_a_job_is_cancelled_by_another_process(
    tmp_path: Path, store: SqliteStore, closed_gate: None
) -> None:
    with running(tmp_path) as threads:
        execution = held(threads)
        cancel_job(store, execution.id)
        GATE.set()
        execution.exception(20)
        assert execution.cancelled()
    assert job_view(store, execution.id).state == "cancelled"
    with pytest.raises(PyriteError, match="has ended: it was cancelled"):
        cancel_job(store, execution.id)


@pytest.mark.parametrize("act", [job_view, cancel_job])
def test_an_unknown_job_is_refused(
    store: SqliteStore, act: Callable[[SqliteStore, str], object]
) -> None:
    with pytest.raises(PyriteError, match="there is no durable job 'nobody'"):
        act(store, "nobody")


def test_a_deployment_shows_peers_their_history_and_queues(
    tmp_path: Path, store: SqliteStore, closed_gate: None
) -> None:
    queues = SqliteQueues(tmp_path)
    with running(tmp_path, peers=1) as threads:
        execution = held(threads)
        while (view := deployment_view(store, queues)).peers[0].state != "active":
            store.changed(0.01)  # the coordinator sees the ack a moment after the peer begins
        GATE.set()
        execution.result(20)
    queues.close()
    (peer,) = view.peers
    assert peer.part is not None
    assert peer.part.job == execution.id
    assert peer.since is not None
    assert [m.state for m in view.history if m.peer == peer.name][-2:] == ["acking", "active"]
    assert list(view.history) == sorted(view.history, key=lambda moment: moment.t)
    waiting = {queue.edge: queue for queue in view.queues}
    assert waiting["read → work"].messages >= 1
    assert {"the splits → read", "read → completion"} <= waiting.keys()
    document = json.loads(json.dumps(view.to_json()))
    assert document["jobs"][0]["parts"] > document["jobs"][0]["complete"]
    assert document["peers"][0]["part"]["task"] == peer.part.task


def test_a_job_whose_queues_are_gone_does_not_hide_the_others(
    tmp_path: Path, store: SqliteStore
) -> None:
    store.create("/catalog/early", '["early",1.0]')
    queues = SqliteQueues(tmp_path)
    view = deployment_view(store, queues)
    queues.close()
    assert (view.queues, view.problem, view.jobs[0].name) == ((), None, "early")


def test_a_large_dag_is_kept_without_its_steps() -> None:
    step = "x" * 300
    vertices = tuple(ShapeVertex(name=f"v{i}", task="t", step=step) for i in range(3000))
    text = Shape(vertices=vertices).text()
    assert text is not None
    assert len(text) <= MOST_CHARACTERS
    assert [v.name for v in Shape.read(text).vertices] == [v.name for v in vertices]
    assert Shape(vertices=vertices * 10).text() is None


def test_a_watcher_sees_a_folder_from_any_thread(tmp_path: Path, closed_gate: None) -> None:
    with running(tmp_path, peers=1) as threads, closing(Watcher(str(tmp_path))) as watcher:
        execution = held(threads)
        with ThreadPoolExecutor(4) as pool:
            seen = list(pool.map(lambda _: watcher.job(execution.id), range(8)))
        assert {view.state for view in seen} == {"running"}
        assert watcher.deployment().queues
        watcher.cancel(execution.id)
        GATE.set()
        assert isinstance(execution.exception(20), JobCancelled)


def test_a_watcher_makes_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / "nothing"
    missing = pytest.raises(PyriteError, match="the folder does not exist")
    with closing(Watcher(str(folder))) as watcher, missing:
        watcher.deployment()
    assert not folder.exists()
