"""Named maps and lists in Redis, in jobs on Spark: tasks read and write them directly, and only
what a completed job has written is there afterwards."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import pyrite
from pyrite import DAG, Instance, JobCancelled, JobConfig, JobFailed, between, from_
from pyrite import processors as p
from pyrite.collections import redis_at
from pyrite.context import ProcessorContext
from pyrite.processor import AbstractProcessor
from pyrite.spark.packets import COLLECTED
from pyrite.spark.redis import InRedis
from tests.redis_server import RedisServer
from tests.spark.line import run_task, works_of


@pytest.fixture
def pyr(local_spark: Instance, redis: RedisServer) -> Iterator[Instance]:
    with pyrite.instance(spark=local_spark.spark(), collections=redis.url) as instance:
        yield instance


def line(*suppliers: Any) -> DAG:
    dag = DAG()
    vertices = [dag.vertex(f"v{n}", each) for n, each in enumerate(suppliers)]
    for a, b in pairwise(vertices):
        dag.edge(between(a, b).distributed())
    return dag


def run(pyr: Instance, dag: DAG) -> None:
    pyr.new_job(dag, JobConfig(members=2)).execute().result(60)


def keys(redis: RedisServer) -> set[str]:
    with redis.client() as client:
        found: Any = client.keys()
        return {key.decode() for key in found}


def test_a_job_reads_and_writes_and_leaves_nothing_else(pyr: Instance, redis: RedisServer) -> None:
    pyr.map("in").update({n: -n for n in range(1000)})
    pyr.list("numbers").extend(range(1000))
    pyr.map("out")[-1] = 1
    run(pyr, line(p.read_map("in"), p.write_map("out")))
    run(pyr, line(p.read_list("numbers"), p.write_list("new")))
    run(pyr, line(p.read_list("numbers"), p.write_list("new")))
    assert pyr.map("out") == {-1: 1, **{n: -n for n in range(1000)}}
    assert sorted(pyr.list("new")) == sorted([*range(1000), *range(1000)])
    assert keys(redis) == {
        f"pyrite:{name}" for name in ("map:in", "list:numbers", "map:out", "list:new")
    }


def test_two_vertices_that_read_one_map_get_each_entry_once(pyr: Instance) -> None:
    pyr.map("in").update({n: n for n in range(100)})
    dag = DAG()
    for name in ("a", "b"):
        source = dag.vertex(name, p.read_map("in"))
        dag.edge(between(source, dag.vertex(f"to {name}", p.write_list(name))))
    run(pyr, dag)
    assert sorted(pyr.list("a")) == sorted(pyr.list("b")) == [(n, n) for n in range(100)]


def test_attempts_at_a_task_before_the_last_stage_make_the_same_rows(redis: RedisServer) -> None:
    """Spark compares them."""
    stored = redis_at(redis.url)
    assert stored is not None
    stored.list("in").extend(range(100))
    job = InRedis(redis.url, "e")
    job.begin()
    dag = DAG()
    source = dag.vertex("source", p.read_list("in"))
    dag.edge(between(source, dag.vertex("copy", p.write_list("copy"))))
    dag.edge(from_(source, 1).to(dag.vertex("last", p.write_list("out"))).distributed())
    first, second = works_of(dag, 2, job)
    arrived = run_task(first, 0, [], attempt="1")
    assert run_task(first, 0, [], attempt="2") == arrived
    arrived += run_task(first, 1, [], attempt="3")
    made = [row for member in (0, 1) for row in run_task(second, member, arrived, attempt="4")]
    job.commit([pickle.loads(row["items"]) for row in made if row["edge"] == COLLECTED])
    job.end()
    assert sorted(stored.list("copy")) == sorted(stored.list("out")) == list(range(100))
    assert keys(redis) == {f"pyrite:list:{name}" for name in ("in", "copy", "out")}
    stored.close()


class LooksUp(AbstractProcessor):
    def init(self, context: ProcessorContext) -> None:
        self._names = context.collections.map("names")
        self._found = context.collections.list("found")

    def try_process_any(self, ordinal: int, item: Any) -> None:
        self._found.append(self._names.get(item, "none"))


def test_a_processor_reads_a_map_and_adds_to_a_list(pyr: Instance) -> None:
    pyr.map("names").update({1: "one", 2: "two"})
    run(pyr, line(p.read_items([1, 2, 3]), LooksUp))
    assert sorted(pyr.list("found")) == ["none", "one", "two"]


class Pops(AbstractProcessor):
    def init(self, context: ProcessorContext) -> None:
        context.collections.map("names").pop(1, None)


def test_a_task_cannot_remove(pyr: Instance) -> None:
    with pytest.raises(JobFailed, match="can read the map 'names' and add to it, but not change"):
        run(pyr, line(p.read_items([1]), Pops))


class WritesAndFails(AbstractProcessor):
    """Writes, and then fails until it has failed in so many attempts."""

    cooperative = False

    def __init__(self, folder: str, times: int) -> None:
        self._folder = Path(folder)
        self._times = times

    def init(self, context: ProcessorContext) -> None:
        self._attempt = context.attempt
        self._list = context.collections.list("l")

    def try_process_any(self, ordinal: int, item: Any) -> None:
        self._list.append(item)

    def complete(self) -> bool:
        (self._folder / self._attempt).touch()
        if len(list(self._folder.iterdir())) <= self._times:
            raise RuntimeError("this attempt fails")
        return True


def test_what_a_failed_attempt_wrote_is_not_there(
    pyr: Instance, redis: RedisServer, tmp_path: Path
) -> None:
    folder = str(tmp_path)
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(10)))
    sink = dag.vertex("sink", lambda: WritesAndFails(folder, 1))
    dag.edge(between(source, sink))
    pyr.new_job(dag, JobConfig(members=1)).execute().result(60)
    assert len(list(tmp_path.iterdir())) == 2
    assert sorted(pyr.list("l")) == list(range(10))
    assert keys(redis) == {"pyrite:list:l"}


def test_a_job_that_fails_writes_nothing(pyr: Instance, redis: RedisServer, tmp_path: Path) -> None:
    folder = str(tmp_path)
    with pytest.raises(JobFailed, match="this attempt fails"):
        run(pyr, line(p.read_items(range(10)), lambda: WritesAndFails(folder, 99)))
    assert keys(redis) == set()


class WritesAndWaits(AbstractProcessor):
    cooperative = False

    def __init__(self, flag: str) -> None:
        self._flag = Path(flag)

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        context.collections.list("l").append(1)

    def complete(self) -> bool:
        self._flag.touch()
        return self._context.is_cancelled()


def test_a_job_that_is_cancelled_writes_nothing(
    pyr: Instance, redis: RedisServer, tmp_path: Path
) -> None:
    flag = tmp_path / "waits"
    dag = DAG()
    dag.vertex("waits", lambda: WritesAndWaits(str(flag)))
    execution = pyr.new_job(dag, JobConfig(members=1)).execute()
    while not flag.exists():
        assert not execution.done()
    execution.cancel()
    with pytest.raises(JobCancelled):
        execution.result(60)
    assert keys(redis) == set()


def test_a_commit_that_is_refused_fails_the_job_and_undoes_its_files(
    pyr: Instance, redis: RedisServer, tmp_path: Path
) -> None:
    with redis.client() as client:
        client.set("pyrite:list:l", "a string")
    dag = DAG()
    source = dag.vertex("source", p.read_items(["a", "b"]))
    files = dag.vertex("files", p.write_files(str(tmp_path / "out")))
    sink = dag.vertex("sink", p.write_list("l"))
    dag.edge(between(source, files)).edge(from_(source, 1).to(sink))
    with pytest.raises(JobFailed, match="the list 'l' is in Redis"):
        run(pyr, dag)
    assert not list(tmp_path.glob("out/part*"))
    assert keys(redis) == {"pyrite:list:l"}


def test_a_server_that_is_not_there_fails_the_job_at_once(local_spark: Instance) -> None:
    server = RedisServer()
    server.stop()
    with (
        pyrite.instance(spark=local_spark.spark(), collections=server.url) as pyr,
        pytest.raises(JobFailed, match=rf"127\.0\.0\.1:{server.port}/0, which cannot be reached"),
    ):
        run(pyr, line(p.read_items([1]), p.write_list("l")))
