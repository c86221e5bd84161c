"""Groupings give the same groups by every kernel, in one step or two, in memory or with files."""

from __future__ import annotations

import datetime
import math
import uuid
import zoneinfo
from collections.abc import Sequence
from datetime import UTC
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.columns.frames import as_batch, as_polars
from pyrite.columns.grouping.aggregates import FUNCTIONS, Aggregation
from pyrite.columns.kernels import KERNELS, Kernels
from pyrite.keys import one_nan
from tests.columns.groupings import in_one_step, in_two_steps

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


BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
DAY = datetime.date(2024, 10, 27)
NOON = datetime.datetime(2024, 10, 27, 12)
HOUR = datetime.timedelta(hours=1)
NUMBERS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -5, 2**40],
    pa.int8(): [0, 127, -128],
    pa.uint64(): [0, 1, 2**60],
    pa.bool_(): [False, True],
    pa.float64(): [0.0, -0.0, 1.5, -2.0, math.nan],
    pa.float32(): [0.0, -0.0, 1.5, math.nan],
    pa.float16(): [0.0, -0.0, 1.5, math.nan],
    pa.decimal128(10, 2): [Decimal("0.00"), Decimal("-1.50"), Decimal("12345678.90")],
    pa.decimal128(37, 0): [Decimal(3), Decimal(-4)],
    pa.decimal256(50, 3): [Decimal("0.001"), Decimal("2.500")],
    pa.decimal32(7, 2): [Decimal("0.50"), Decimal("3.00")],
    pa.decimal128(9, -2): [Decimal("1E+2"), Decimal("3E+2")],
}
OTHERS: dict[pa.DataType, list[Any]] = {
    pa.string(): ["", "a", "b", "ä", "aa"],
    pa.large_string(): ["", "a", "\U0001f600", "\uffff"],
    pa.string_view(): ["", "a", "more than twelve bytes"],
    pa.binary(): [b"", b"a", b"\xff"],
    pa.binary_view(): [b"", b"a", b"\xff"],
    pa.binary(2): [b"aa", b"\x00\xff"],
    pa.dictionary(pa.int8(), pa.string()): ["a", "b", ""],
    pa.date32(): [DAY, DAY + 24 * HOUR],
    pa.date64(): [DAY, DAY - 24 * HOUR],
    pa.timestamp("us"): [NOON, NOON + HOUR],
    pa.timestamp("s", "Europe/Berlin"): [NOON.replace(tzinfo=BERLIN), NOON.replace(tzinfo=UTC)],
    pa.timestamp("ms", "+01:00"): [NOON.replace(tzinfo=UTC)],
    pa.time32("s"): [datetime.time(1), datetime.time(23, 59, 59)],
    pa.time64("us"): [datetime.time(1), datetime.time(23, 59, 59, 5)],
    pa.duration("ms"): [HOUR, -HOUR],
    pa.uuid(): [uuid.UUID(int=1), uuid.UUID(int=2)],
    pa.null(): [None],
}
TYPES = {**NUMBERS, **OTHERS}


def column_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.uuid():
        storage = pa.array([value and value.bytes for value in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(kind, storage)
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)


@st.composite
def tables(
    draw: st.DrawFn, types: Sequence[pa.DataType] = tuple(TYPES)
) -> tuple[list[pa.RecordBatch], tuple[str, ...], tuple[Any, ...]]:
    """Batches of random types, the columns of a key, and aggregates."""
    kinds = draw(st.lists(st.sampled_from(types), min_size=2, max_size=4))
    names = [f"c{number}" for number in range(len(kinds))]
    schema = pa.schema(list(zip(names, kinds)))
    row = st.tuples(*(st.none() | st.sampled_from(TYPES[kind]) for kind in kinds))
    rows = draw(st.lists(st.lists(row, max_size=8), min_size=1, max_size=4))
    batches = [
        pa.RecordBatch.from_arrays(
            [column_of([row[number] for row in part], kind) for number, kind in enumerate(kinds)],
            schema=schema,
        )
        for part in rows
    ]
    by = draw(st.lists(st.sampled_from(names), unique=True, min_size=1, max_size=2))
    wanted = draw(
        st.lists(st.tuples(st.sampled_from(names), st.sampled_from(FUNCTIONS)), max_size=4)
    )
    aggregates = tuple(
        Aggregation(f"a{number}", column, function)
        for number, (column, function) in enumerate(wanted)
        if function not in ("sum", "mean") or schema.field(column).type in NUMBERS
    )
    return batches, tuple(by), aggregates


@given(tables(), st.sampled_from(KERNELS), st.sampled_from([None, 100]), st.booleans())
@settings(deadline=None, max_examples=40)
def test_groups_are_those_of_plain_python(
    table: Any, kernels: Kernels, budget: int | None, keep_order: bool
) -> None:
    batches, by, aggregates = table
    options: Any = {"kernels": kernels, "budget": budget, "keep_order": keep_order}
    rows = [row for batch in batches for row in batch.to_pylist()]
    expected = per_item(rows, by, aggregates)
    found = in_one_step(batches, by, aggregates, **options)
    assert agree(as_groups(found, by), expected)
    assert agree(as_groups(in_two_steps(batches, by, aggregates, **options), by), expected)
    if keep_order and budget is None:
        assert [one_nan(tuple(row[name] for name in by)) for row in found.to_pylist()] == [
            *expected
        ]


@given(tables(), st.sampled_from([None, 100]))
@settings(deadline=None, max_examples=20)
def test_both_kernels_give_equal_types(table: Any, budget: int | None) -> None:
    batches, by, aggregates = table
    schemas = [
        make(batches, by, aggregates, kernels=kernels, budget=budget).schema
        for kernels in KERNELS
        for make in (in_one_step, in_two_steps)
    ]
    assert all(schema == schemas[0] for schema in schemas)


@given(tables(), st.data(), st.sampled_from(KERNELS), st.sampled_from([None, 100]))
@settings(deadline=None, max_examples=20)
def test_the_order_of_states_does_not_matter_except_to_first(
    table: Any, data: st.DataObject, kernels: Kernels, budget: int | None
) -> None:
    batches, by, aggregates = table
    aggregates = tuple(each for each in aggregates if each.function != "first")
    shuffled = data.draw(st.permutations(batches))
    expected = in_one_step(batches, by, aggregates, kernels=kernels)
    found = in_two_steps(shuffled, by, aggregates, kernels=kernels, budget=budget)
    assert agree(as_groups(found, by), as_groups(expected, by))


NOT_IN_POLARS = (pa.decimal256(50, 3), pa.decimal128(9, -2))


@given(tables([kind for kind in TYPES if kind not in NOT_IN_POLARS]), st.sampled_from(KERNELS))
@settings(deadline=None, max_examples=20)
def test_polars_frames_are_grouped_like_batches(table: Any, kernels: Kernels) -> None:
    batches, by, aggregates = table
    frames = [as_polars(batch) for batch in batches]
    expected = in_one_step([as_batch(frame) for frame in frames], by, aggregates)
    found = in_one_step(frames, by, aggregates, kernels=kernels)
    assert found.schema == expected.schema
    assert agree(as_groups(found, by), as_groups(expected, by))
