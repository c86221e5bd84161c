"""Named maps and lists that a task can only add to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyrite.collections import MemoryCollections
from pyrite.errors import ProcessorError
from pyrite.exchange.collected import AddOnlyCollections, Collected


def test_what_is_added_is_told_and_changes_the_real_ones_when_it_is_put() -> None:
    told: list[Collected] = []
    added = AddOnlyCollections(told.append, "a task")
    added.map("m")["a"] = 1
    added.map("m").update({"a": 2}, b=3)
    added.list("l").append(1)
    added.list("l").extend(iter([2, 3]))
    real = MemoryCollections()
    for each in told:
        each.put(real)
    assert real.contents() == [("map", "m", [("a", 2), ("b", 3)]), ("list", "l", [1, 2, 3])]


@pytest.mark.parametrize(
    ("kind", "use"),
    [
        ("map", lambda c: c.map("x")["a"]),
        ("map", lambda c: c.map("x").pop("a")),
        ("map", lambda c: len(c.map("x"))),
        ("map", lambda c: c.map("x").setdefault("a", 1)),
        ("map", lambda c: list(c.map("x").items())),
        ("list", lambda c: c.list("x")[0]),
        ("list", lambda c: c.list("x").insert(0, 1)),
        ("list", lambda c: c.list("x").remove(1)),
        ("list", lambda c: c.list("x").clear()),
        ("list", lambda c: 1 in c.list("x")),
    ],
)
def test_anything_else_is_refused_and_the_kind_of_job_is_named(
    kind: str, use: Callable[[Any], Any]
) -> None:
    added = AddOnlyCollections(lambda _: None, "a processor of a durable job")
    with pytest.raises(ProcessorError) as refused:
        use(added)
    assert str(refused.value) == (
        f"a processor of a durable job can only add to the {kind} 'x', which changes when the job "
        f"completes; to read it, use p.read_{kind}('x')"
    )
