"""Batches of rows arrive in every mode: each row once, where its key belongs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyrite import DAG, AbstractProcessor, Edge, between
from pyrite import processors as p
from tests.columns.dags import Makes, Rows, numbered, owner, told
from tests.pipeline.modes import Mode, mode

__all__ = ["mode"]

ALL = [row for n in range(10) for row in numbered(20 * n, 20).to_pylist()]


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


@pytest.fixture
def members(request: pytest.FixtureRequest, mode: Mode) -> int:
    return 1 if request.node.callspec.params["mode"] == "light" else 2


def in_order(rows: Rows) -> list[dict[str, Any]]:
    return sorted((row for _, row in rows), key=lambda row: row["n"])


def by_text(edge: Edge) -> Edge:
    return edge.distributed().partitioned(columns=["text"])


def test_each_row_goes_where_its_key_belongs(mode: Mode, members: int) -> None:
    (rows,) = mode.listed(told(by_text), "told")
    assert in_order(rows) == ALL
    for index, row in rows:
        assert index == owner(row["text"], 3, members)


@pytest.mark.parametrize("shape", ["unicast", "broadcast", "all_to_one"])
def test_other_edges_carry_whole_batches(mode: Mode, members: int, shape: str) -> None:
    dag = told(lambda edge: getattr(edge.distributed(), shape)(), receivers=1)
    (rows,) = mode.listed(dag, "told")
    times = members if shape == "broadcast" else 1
    assert in_order(rows) == [row for row in ALL for _ in range(times)]


def test_a_list_holds_batches(mode: Mode) -> None:
    dag = DAG()
    reads = dag.vertex("reads", p.read_items([numbered(0, 100_000).slice(7, 3)]))
    dag.edge(between(reads, dag.vertex("keeps", p.write_list("told"))).distributed())
    assert mode.listed(dag, "told") == [[numbered(7, 3)]]


class Keeps(AbstractProcessor):
    """Has a state of batches inside other things, and emits it at the end."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, pa.RecordBatch]] = []

    def try_process_0(self, batch: pa.RecordBatch) -> None:
        self.kept.append(("kept", batch))

    def complete(self) -> None:
        for each in self.kept:
            self.emit(each)

    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        return enumerate(self.kept)

    def restore_snapshot(self, key: Any, value: Any) -> None:
        self.kept.append(value)


class TellsKept(AbstractProcessor):
    def try_process_0(self, item: tuple[str, pa.RecordBatch]) -> None:
        for row in item[1].to_pylist():
            self.emit((0, row))


def test_batches_travel_inside_other_items(mode: Mode) -> None:
    dag = DAG()
    makes = dag.vertex("makes", Makes, local_parallelism=1)
    keeps = dag.vertex("keeps", Keeps, local_parallelism=1)
    tells = dag.vertex("tells", TellsKept, local_parallelism=1)
    lists = dag.vertex("lists", p.write_list("told"), local_parallelism=1)
    dag.edge(by_text(between(makes, keeps))).edge(between(keeps, tells).distributed())
    dag.edge(between(tells, lists))
    assert in_order(mode.listed(dag, "told")[0]) == ALL


class Program(AbstractProcessor):
    """Emits the command line of its process."""

    def complete(self) -> None:
        self.emit(Path("/proc/self/cmdline").read_bytes())


def test_no_process_is_forked_from_the_users(mode: Mode, members: int) -> None:
    dag = DAG()
    tells = dag.vertex("tells", Program, local_parallelism=1)
    dag.edge(between(tells, dag.vertex("lists", p.write_list("told"))))
    (programs,) = mode.listed(dag, "told")
    own = Path("/proc/self/cmdline").read_bytes()
    assert len(programs) == members
    assert (own in programs) == (members == 1)  # Polars does not survive a fork


class Large(AbstractProcessor):
    """Emits 20 batches of 1 MB."""

    def __init__(self) -> None:
        self.rest: Iterator[pa.RecordBatch] = (
            pa.record_batch({"n": np.arange(n << 17, n + 1 << 17)}) for n in range(20)
        )

    def complete(self) -> bool:
        return self.emit_cooperatively(self.rest)


class Sums(AbstractProcessor):
    def __init__(self) -> None:
        self.sum = 0

    def try_process_0(self, batch: pa.RecordBatch) -> None:
        self.sum += pc.sum(batch["n"]).as_py()

    def complete(self) -> None:
        self.emit(self.sum)


@pytest.mark.parametrize("shape", ["columns", "unicast"])
def test_many_megabytes_arrive(mode: Mode, shape: str) -> None:
    def shaped(edge: Edge) -> Edge:
        edge = edge.distributed()
        return edge.partitioned(columns=["n"]) if shape == "columns" else edge

    dag = told(shaped, senders=1, receivers=2, source=Large, receiver=Sums)
    (sums,) = mode.listed(dag, "told")
    count = 20 << 17
    members = len(sums) // 2
    assert sum(sums) == members * (count * (count - 1) // 2)
