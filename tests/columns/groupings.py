"""Groupings of frames in one call, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pyrite.columns.grouping.aggregates import Aggregation, GroupSpec, group_spec
from pyrite.columns.grouping.grouping import Grouping


def groups(
    frames: Sequence[Any],
    by: Sequence[str],
    aggregates: dict[str, tuple[str, str]],
    **options: Any,
) -> pa.Table:
    """The result of a complete grouping, in the order of the keys' first appearance."""
    spec = group_spec(by, aggregates, where="group_batches()")
    return pa.Table.from_batches(results(frames, spec, **options))


def results(frames: Sequence[Any], spec: GroupSpec, **options: Any) -> list[pa.RecordBatch]:
    options = {"keep_order": True, "vertex": "sum", **options}
    grouping = Grouping(spec, **options)
    try:
        for frame in frames:
            grouping.add(frame)
        return list(grouping.results())
    finally:
        grouping.close()


def in_two_steps(
    frames: Sequence[Any], by: tuple[str, ...], aggregates: tuple[Aggregation, ...], **options: Any
) -> pa.Table:
    """The result of one grouping of states per frame, and one of all their states."""
    states = [
        state
        for frame in frames
        for state in results([frame], GroupSpec(by, aggregates, gives="states"), **options)
    ]
    return pa.Table.from_batches(
        results(states, GroupSpec(by, aggregates, takes="states"), **options)
    )


def in_one_step(
    frames: Sequence[Any], by: tuple[str, ...], aggregates: tuple[Aggregation, ...], **options: Any
) -> pa.Table:
    return pa.Table.from_batches(results(frames, GroupSpec(by, aggregates), **options))
