"""Groupings give the same groups by every kernel, in one step or two, in memory or with files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.grouping.aggregates import FUNCTIONS, Aggregation, GroupSpec, group_spec
from pyrite.columns.grouping.grouping import Grouping
from pyrite.columns.kernels import KERNELS, Kernels
from pyrite.keys import one_nan


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


# What an aggregate is, in plain Python over rows.


def per_item(
    rows: list[dict[str, Any]], by: Sequence[str], aggregates: Sequence[Aggregation]
) -> Any:
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(one_nan(tuple(row[name] for name in by)), []).append(row)
    return {
        key: [aggregate(each.function, [row[each.column] for row in group]) for each in aggregates]
        for key, group in found.items()
    }


def aggregate(function: str, values: list[Any]) -> Any:
    values = [value for value in values if value is not None]
    if function == "count":
        return len(values)
    if function == "count_distinct":
        return len({one_nan(value) for value in values})
    if not values:
        return None
    if function == "first":
        return values[0]
    if function in ("min", "max"):
        numbers = [value for value in values if value == value] or values  # NaN only of NaNs
        return min(numbers) if function == "min" else max(numbers)
    total = sum(values)
    return total if function == "sum" else float(total) / len(values)


def as_groups(table: pa.Table, by: Sequence[str]) -> Any:
    rows = table.to_pylist()
    groups = {
        one_nan(tuple(row[name] for name in by)): list(row.values())[len(by) :] for row in rows
    }
    assert len(groups) == len(rows)
    return groups


def agree(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(agree(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(agree, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9) or (one != one and other != other)
    return bool(one == other) and type(one) is type(other)


INT8 = st.integers(-(2**7), 2**7 - 1)
TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**40), 2**40) | st.sampled_from([0, 1]),
    pa.int8(): INT8,
    pa.uint64(): st.sampled_from([0, 1, 2**60]),
    pa.bool_(): st.booleans(),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, -2.0, math.nan]),
    pa.float32(): st.sampled_from([0.0, -0.0, 1.5, math.nan]),
    pa.string(): st.sampled_from(["", "a", "b", "ä", "aa"]),
    pa.large_string(): st.text(max_size=2),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[pa.RecordBatch], tuple[str, ...], tuple[Any, ...]]:
    """Batches of random types, the columns of a key, and aggregates."""
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=2, max_size=4))
    names = [f"c{number}" for number in range(len(kinds))]
    schema = pa.schema(list(zip(names, kinds)))
    row = st.tuples(*(st.none() | TYPES[kind] for kind in kinds))
    rows = draw(st.lists(st.lists(row, max_size=8), min_size=1, max_size=4))
    batches = [
        pa.RecordBatch.from_pylist([dict(zip(names, each)) for each in part], schema)
        for part in rows
    ]
    by = draw(st.lists(st.sampled_from(names), unique=True, min_size=1, max_size=2))
    wanted = draw(
        st.lists(st.tuples(st.sampled_from(names), st.sampled_from(FUNCTIONS)), max_size=4)
    )
    aggregates = tuple(
        Aggregation(f"a{number}", column, function)
        for number, (column, function) in enumerate(wanted)
        if function not in ("sum", "mean") or not is_text(schema.field(column).type)
    )
    return batches, tuple(by), aggregates


def is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string())


@given(tables(), st.sampled_from(KERNELS), st.sampled_from([None, 100]), st.booleans())
@settings(deadline=None)
def test_groups_are_those_of_plain_python(
    table: Any, kernels: Kernels, budget: int | None, keep_order: bool
) -> None:
    batches, by, aggregates = table
    options = {"kernels": kernels, "budget": budget, "keep_order": keep_order}
    rows = [row for batch in batches for row in batch.to_pylist()]
    expected = per_item(rows, by, aggregates)
    found = pa.Table.from_batches(results(batches, GroupSpec(by, aggregates), **options))
    assert agree(as_groups(found, by), expected)
    assert agree(as_groups(in_two_steps(batches, by, aggregates, **options), by), expected)
    if keep_order and budget is None:
        assert [one_nan(tuple(row[name] for name in by)) for row in found.to_pylist()] == [
            *expected
        ]


@given(tables(), st.sampled_from([None, 100]))
@settings(deadline=None)
def test_both_kernels_give_equal_types(table: Any, budget: int | None) -> None:
    batches, by, aggregates = table
    schemas = [
        make(batches, by, aggregates, kernels=kernels, budget=budget).schema
        for kernels in KERNELS
        for make in (in_one_step, in_two_steps)
    ]
    assert all(schema == schemas[0] for schema in schemas)


def in_one_step(
    frames: Sequence[Any], by: tuple[str, ...], aggregates: tuple[Aggregation, ...], **options: Any
) -> pa.Table:
    return pa.Table.from_batches(results(frames, GroupSpec(by, aggregates), **options))
