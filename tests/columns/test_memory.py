"""How many bytes a step on batches may hold."""

from __future__ import annotations

import resource
from dataclasses import replace
from typing import Any

import pytest

from pyrite import InvalidDAG, ProcessorContext
from pyrite import processors as p
from pyrite.processors.columns.memory import memory_for
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
    assert memory_for(5, replace(CONTEXT, memory_budget=7, batch_budget=6)) == 5
    assert memory_for(None, replace(CONTEXT, memory_budget=7, batch_budget=6)) == 6
    assert memory_for(None, replace(CONTEXT, memory_budget=7)) == 7


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
