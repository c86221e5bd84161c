"""Durable jobs that a peer runs on Spark: the same results as normal jobs, whoever dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import pyrite
from pyrite import (
    DAG,
    Execution,
    Instance,
    InvalidDAG,
    JobCancelled,
    JobConfig,
    JobFailed,
    MetaSupplierContext,
    ProcessorMetaSupplier,
    ProcessorSupplier,
    PyriteError,
    between,
)
from pyrite import processors as p
from pyrite.exchange.driving import SparkSettings
from pyrite.spark.driver import SparkDriver
from pyrite.spark.session import LazySession
from tests.cluster.test_light_jobs import straight
from tests.cluster.test_normal_jobs import Gate, until
from tests.durable.threads import Threads, running


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance with the Spark session is shared, so its threads stay."""


class Drivers:
    """Drives jobs on the Spark session of all tests. The first of `refusals` come to nothing."""

    def __init__(self, instance: Instance) -> None:
        self._session = LazySession(master=None, conf=None, spark=instance.spark())
        self.refusals = 0

    def __call__(self, settings: SparkSettings) -> SparkDriver:
        if self.refusals:
            self.refusals -= 1
            raise PyriteError("Spark is not there")
        return SparkDriver(self._session)


@pytest.fixture(scope="module")
def drivers(local_spark: Instance) -> Drivers:
    return Drivers(local_spark)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, drivers: Drivers) -> Iterator[Threads]:
    with running(tmp_path_factory.mktemp("durable"), new_driver=drivers) as threads:
        yield threads


@pytest.fixture
def threads(shared: Threads) -> Threads:
    shared.collections.list("out").clear()
    return shared


def counting(folder: Path) -> DAG:
    """Counts words into a list and into files."""
    dag = DAG()
    words = dag.vertex("words", p.read_items(f"word{n % 50}" for n in range(2000)))
    count = dag.vertex("count", p.group_and_accumulate(lambda word: word, 0, lambda n, _: n + 1))
    out = dag.vertex("out", p.write_list("out"))
    files = dag.vertex("files", p.write_files(folder, "json"))
    dag.edge(between(words, count).distributed().partitioned(key=lambda word: word))
    dag.edge(between(count, out))
    return dag.edge(pyrite.from_(count, 1).to(files))


def lines_in(folder: Path) -> list[str]:
    return sorted(line for file in folder.glob("part-*") for line in file.read_text().splitlines())


def test_the_list_and_the_files_are_those_of_a_normal_job(
    threads: Threads, local_spark: Instance, tmp_path: Path
) -> None:
    local_spark.list("out").clear()
    local_spark.new_job(counting(tmp_path / "normal")).execute().result(60)
    execution = threads.execute(counting(tmp_path / "durable"), on="spark", members=3)
    execution.result(60)
    assert sorted(threads.collections.list("out")) == sorted(local_spark.list("out"))
    assert lines_in(tmp_path / "durable") == lines_in(tmp_path / "normal") != []
    assert execution.metrics()["count"]["received"] == 2000
    assert not list((tmp_path / "durable").glob(".pyrite-*-files"))


def test_a_named_list_is_read(threads: Threads) -> None:
    threads.collections.list("in").extend([1, 2, 3])
    dag = straight(p.read_list("in"), p.map(lambda n: 10 * n), p.write_list("out"))
    threads.execute(dag, on="spark").result(60)
    assert sorted(threads.collections.list("out")) == [10, 20, 30]


def test_a_failure_names_the_vertex_and_the_item(threads: Threads) -> None:
    dag = straight(p.read_items([1, 0]), p.map(lambda n: 1 // n), p.write_list("out"))
    with pytest.raises(JobFailed, match="job 'ratio' failed in vertex 'v1'") as failed:
        threads.execute(dag, on="spark", name="ratio").result(60)
    assert (failed.value.vertex, failed.value.item) == ("v1", 0)
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    assert not threads.collections.list("out")


def test_a_cancel_stops_the_job_on_spark(
    threads: Threads, local_spark: Instance, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    out = tmp_path / "files"
    execution = threads.execute(
        straight(p.read_items([1]), p.map(gate), p.write_files(out)), on="spark"
    )
    gate.worker()
    execution.cancel()
    with pytest.raises(JobCancelled):
        execution.result(60)
    threads.execute(straight(p.read_items([7]), p.write_list("out")), on="spark").result(60)
    assert list(threads.collections.list("out")) == [7]
    assert not local_spark.spark().sparkContext.statusTracker().getActiveStageIds()
    assert not out.exists()


def test_if_spark_is_not_there_the_job_is_tried_again(threads: Threads, drivers: Drivers) -> None:
    drivers.refusals = 2
    threads.execute(straight(p.read_items([1]), p.write_list("out")), on="spark").result(60)
    assert list(threads.collections.list("out")) == [1]
    drivers.refusals = 3
    with pytest.raises(JobFailed, match="Spark is not there"):
        threads.execute(straight(p.read_items([1]), p.write_list("out")), on="spark").result(60)
    assert not drivers.refusals


class Signing(ProcessorMetaSupplier):
    """Writes a line when it is committed, with what it has learned before."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def init(self, context: MetaSupplierContext) -> None:
        self._members = context.member_count

    def get(self, addresses: Sequence[str]) -> Sequence[ProcessorSupplier]:
        return [Idle() for _ in addresses]

    def commit(self) -> None:
        with self._file.open("a") as file:
            file.write(f"{self._members}\n")


class Idle(ProcessorSupplier):
    def get(self, count: int) -> list[pyrite.Processor]:
        return [pyrite.AbstractProcessor() for _ in range(count)]


def test_the_completion_commits_the_meta_suppliers(threads: Threads, tmp_path: Path) -> None:
    dag = straight(p.read_items([]), Signing(tmp_path / "signed"))
    threads.execute(dag, on="spark", members=3).result(60)
    assert (tmp_path / "signed").read_text() == "3\n"


def test_a_data_frame_of_this_process_is_refused(threads: Threads, local_spark: Instance) -> None:
    frame = local_spark.spark().range(3)
    with pytest.raises(InvalidDAG, match="vertex 'v0' reads a DataFrame of this process"):
        threads.execute(straight(p.read_spark(frame), p.write_list("out")), on="spark")


def test_if_the_peer_is_killed_another_starts_the_job_again(tmp_path: Path) -> None:
    gate, out = Gate(tmp_path), tmp_path / "files"
    dag = straight(
        p.read_items(range(200)), p.map(_after(gate)), p.write_list("out"), distributed=False
    )
    dag.edge(pyrite.from_(dag["v1"], 1).to(dag.vertex("files", p.write_files(out))))
    conf = {"spark.ui.enabled": "false", "spark.driver.memory": "1g"}
    with pyrite.instance(
        durable=tmp_path / "durable", peers=2, spark_master="local[2]", spark_conf=conf
    ) as pyr:
        execution = pyr.new_durable_job(dag, JobConfig(members=2), on="spark").execute()
        driving = _peer_above(gate.worker(), [pid for _, pid in pyr.processes()])
        until(lambda: _received(execution) > 0)
        assert driving in [member["pid"] for member in execution.members()]
        seen = [_received(execution)]
        os.kill(driving, signal.SIGKILL)
        gate.open()
        while not execution.done():
            seen.append(_received(execution))
            time.sleep(0.1)
        execution.result(120)
        assert sorted(pyr.list("out")) == list(range(200))
        assert sorted(map(int, lines_in(out))) == list(range(200))
        assert [*seen, 200] == sorted([*seen, _received(execution)])


def _received(execution: Execution) -> int:
    return int(execution.metrics().get("v2", {"received": 0})["received"])


def _after(gate: Gate) -> Callable[[int], int]:
    """Half of the members wait for the gate; the others have done their work when it opens."""

    def pass_on(item: int) -> int:
        return item if item % 2 else int(gate(item))

    return pass_on


def _peer_above(pid: int, peers: Sequence[int]) -> int:
    """The peer that has started a worker of Spark."""
    while pid not in peers:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid
