"""Random tables, and what their groups and joins are in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

Row = dict[str, Any]

KEYS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int64": (pa.int64(), st.sampled_from([-1, 0, 1, 2, 2**61 - 1, -(2**63), 2**63 - 1])),
    "float64": (
        pa.float64(),
        st.sampled_from([0.0, -0.0, 1.0, 0.5, -1e300, math.inf, -math.inf, math.nan]),
    ),
    "string": (pa.string(), st.sampled_from(["", "a", "A", "é", "Zürich", "a\x1fb", "日本"])),
    "bool": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.sampled_from([date(1970, 1, 1), date(1969, 7, 20), date(9999, 1, 1)])),
    "utc": (
        pa.timestamp("us", "UTC"),
        st.sampled_from([datetime(2020, 1, day, tzinfo=UTC) for day in (1, 2, 3)]),
    ),
    "decimal": (pa.decimal128(10, 2), st.sampled_from([Decimal("1.00"), Decimal("-2.50")])),
    "binary": (pa.binary(), st.sampled_from([b"", b"a", b"\xff"])),
}
"""Types of keys, each with few values, so that groups have several rows."""


@st.composite
def tables(draw: st.DrawFn, *, most_rows: int = 30) -> tuple[pa.Schema, list[Row]]:
    """A table with two key columns, `k` and `l`, and values: `i` ints, `x` floats, `s` strings."""
    kinds = [draw(st.sampled_from(sorted(KEYS))) for _ in range(2)]
    schema = pa.schema(
        [
            *((name, KEYS[kind][0]) for name, kind in zip("kl", kinds)),
            ("i", pa.int64()),
            ("x", pa.float64()),
            ("s", pa.string()),
        ]
    )
    values = [
        *(KEYS[kind][1] for kind in kinds),
        st.integers(-(2**40), 2**40),
        st.sampled_from([0.0, 0.5, -2.25, 1e6]),
        st.sampled_from(["x", "y", "", "ß"]),
    ]
    row = st.tuples(*(st.none() | each for each in values))
    rows = draw(st.lists(row, max_size=most_rows))
    return schema, [dict(zip(schema.names, each)) for each in rows]


def batches_of(schema: pa.Schema, rows: Sequence[Row], size: int) -> list[pa.RecordBatch]:
    """The rows in batches of that size."""
    whole = pa.RecordBatch.from_pylist(list(rows), schema)
    return [whole.slice(start, size) for start in range(0, len(rows), size)]


AGGREGATES = {
    "sum": ("i", "sum"),
    "mean": ("x", "mean"),
    "least": ("s", "min"),
    "most": ("i", "max"),
    "n": ("s", "count"),
    "different": ("s", "count_distinct"),
}

_FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "sum": sum,
    "mean": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
}


def grouped(rows: Iterable[Row], by: Sequence[str]) -> list[Row]:
    """The groups of the rows with the AGGREGATES, in plain Python."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(comparable(row[name]) for name in by), []).append(row)
    found = []
    for group in groups.values():
        result = {name: group[0][name] for name in by}
        for name, (column, function) in AGGREGATES.items():
            values = [row[column] for row in group if row[column] is not None]
            if function == "count":
                result[name] = len(values)
            elif function == "count_distinct":
                result[name] = len(set(values))
            else:
                result[name] = _FUNCTIONS[function](values) if values else None
        found.append(result)
    return found


def joined(left: Iterable[Row], right: Iterable[Row], on: Sequence[str]) -> list[Row]:
    """The inner join of two lists of rows, in plain Python."""
    held: dict[Any, list[Row]] = {}
    for row in right:
        if None not in (key := [comparable(row[name]) for name in on]):
            held.setdefault(tuple(key), []).append(row)
    return [
        {**row, **{name if name not in row else f"{name}_right": value for name, value in rest}}
        for row in left
        for other in held.get(tuple(comparable(row[name]) for name in on), ())
        for rest in [[(name, value) for name, value in other.items() if name not in on]]
    ]


def comparable(value: Any) -> Any:
    """A value that equals itself: all NaNs are one."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def as_set(rows: Iterable[Row]) -> list[str]:
    """The rows in an order that only depends on them. -0.0 is 0.0, and a moment has no zone."""
    return sorted(repr({name: _plain(value) for name, value in row.items()}) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    return value + 0.0 if isinstance(value, float) else value
