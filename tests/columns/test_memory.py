"""How many bytes a step on batches may hold."""

from __future__ import annotations

import resource
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from pyrite import InvalidDAG, ProcessorContext
from pyrite import processors as p
from pyrite.processors.columns.memory import LEAST, memory_for
from pyrite.processors.columns.small_batches import Small
from pyrite.spark.tasks import GROUPS_BYTES_HELD, batch_budget

CONTEXT = ProcessorContext(
    vertex_name="group",
    local_parallelism=2,
    member_count=1,
    job_id="",
    execution_id="",
    collections=None,  # type: ignore[arg-type]
    member_index=0,
    local_index=0,
)


def test_what_a_step_asks_for_comes_first_then_what_the_engine_allows() -> None:
    context = replace(CONTEXT, memory_budget=7 << 20, batch_budget=6 << 20)
    assert memory_for(5 << 20, context) == 5 << 20
    assert memory_for(None, context) == 6 << 20
    assert memory_for(None, replace(CONTEXT, memory_budget=7 << 20)) == 7 << 20


def test_a_tiny_memory_is_enough_to_make_progress() -> None:
    assert memory_for(1, CONTEXT) == LEAST


def test_without_a_limit_the_processors_of_a_vertex_share_a_part_of_the_machine() -> None:
    assert memory_for(None, CONTEXT) == 2 * memory_for(None, replace(CONTEXT, local_parallelism=4))


def test_in_a_task_it_depends_on_the_limit_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert batch_budget() == GROUPS_BYTES_HELD
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (8 << 30, 8 << 30))
    assert batch_budget() == 1 << 30


@pytest.mark.parametrize("memory", [0, -1, 1.5, "1 GB", True])
def test_a_memory_that_is_no_number_of_bytes_is_refused(memory: Any) -> None:
    with pytest.raises(InvalidDAG, match=r"memory of group_batches\(\) in test_memory.py line"):
        p.group_batches(["k"], {"n": ("v", "sum")}, memory=memory)


def test_small_batches_reach_a_kernel_together() -> None:
    small = Small()
    got: list[pa.RecordBatch] = []
    for n in range(1000):
        got += small.add(pa.record_batch({"n": [n]}))
    got += [*small.add(pa.record_batch({"m": [1]})), *small.rest()]
    assert [batch.num_rows for batch in got] == [Small.MANY, 1000 - Small.MANY, 1]
    assert [n for batch in got[:2] for n in batch.column("n").to_pylist()] == list(range(1000))


def test_dictionaries_that_do_not_fit_together_go_one_by_one() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    batches = [
        pa.record_batch({"s": pa.array([f"{n}-{i}" for i in range(100)]).cast(kind)})
        for n in range(2)
    ]
    small = Small()
    found = [*small.add(batches[0]), *small.add(batches[1]), *small.rest()]
    assert [batch.num_rows for batch in found] == [100, 100]


def test_what_waits_to_be_put_together_is_little() -> None:
    small, size = Small(), 0
    batch = pa.record_batch({"n": [0] * 4096})  # 32 kB
    for _ in range(Small.MANY - 1):
        size += batch.nbytes - sum(each.nbytes for each in small.add(batch))
        assert size <= Small.MOST_BYTES
