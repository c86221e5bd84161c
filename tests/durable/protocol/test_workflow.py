"""Workflows: phases, parts, and what is refused."""

from __future__ import annotations

import pytest

from pyrite.durable.protocol.workflow import Edge, Part, Task, Workflow
from pyrite.errors import InvalidDAG
from tests.durable.protocol.shapes import DIAMOND, SHAPES, task


def test_the_phase_of_a_task_is_the_longest_path_to_it() -> None:
    assert DIAMOND.phases == {"in": 0, "left": 1, "right": 1, "merge": 2, "out": 3}


def test_a_task_has_as_many_parts_as_members() -> None:
    parts = [part for part in DIAMOND.parts_of("j") if part.task == "right"]
    assert parts == [Part("j", "right", 0), Part("j", "right", 1)]
    assert DIAMOND.part_count == 6


@pytest.mark.parametrize("workflow", SHAPES.values(), ids=SHAPES)
def test_a_workflow_can_be_written_and_read(workflow: Workflow) -> None:
    assert Workflow.read(workflow.text()) == workflow


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        ([task("b", "concurrent", 1, "a"), task("a", "concurrent", 1)], "not a task before it"),
        ([task("a", "concurrent", 2)], "cannot have 2 parts"),
        ([task("a", "sequential", 0)], "cannot have 0 parts"),
        ([task("a", "concurrent", 1), Task("a", "concurrent", 1, (Edge("e", None),))], "own"),
        ([Task("a", "concurrent", 1, ())], "no inbound edge"),
        ([task("a", "concurrent", 1), task("b", "concurrent", 1, "a", "a")], "named 'a-b'"),
    ],
)
def test_what_cannot_run_is_refused(tasks: list[Task], problem: str) -> None:
    with pytest.raises(InvalidDAG, match=problem):
        Workflow(tuple(tasks))
