"""What a part tells the completion of its job becomes messages before it is too much."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pyrite
from pyrite import DAG, processors
from pyrite.durable.parts.code import unpacked_code
from pyrite.durable.parts.egress import MANY_TOLD, MESSAGE_BYTES, Egress
from pyrite.durable.parts.told import Added
from pyrite.exchange.collected import Collected
from tests.durable.parts.bench import Bench


@pytest.fixture
def egress(tmp_path: Path) -> Iterator[Egress]:
    dag = DAG()
    a = dag.vertex("a", processors.read_items([1]))
    dag.edge(pyrite.between(a, dag.vertex("b", processors.write_list("l"))))
    bench = Bench(tmp_path, dag)
    with unpacked_code(bench.queues.code("job")) as (code, _):
        task = next(task for task in code.planned.tasks if task.to_completion)
        yield Egress("job", code.planned, task, bench.queues.most_bytes)
    bench.queues.close()
    bench.store.close()


def messages(egress: Egress, size: int, count: int) -> int:
    """How many messages there are when so many additions of so many bytes were told."""
    for _ in range(count):
        egress.tell(Added(Collected("list", "l", [bytes(size)])))
        egress.settle()
    return len(egress._messages)


def test_large_additions_do_not_wait_for_others(egress: Egress) -> None:
    assert messages(egress, MESSAGE_BYTES, 10) == 10


def test_small_additions_share_messages(egress: Egress) -> None:
    assert messages(egress, 10, 1 + 2 * MANY_TOLD) == 3
