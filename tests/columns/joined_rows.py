"""Joins of rows as dicts, one by one, by the rules of joins of items; and random sides of joins."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from pyrite.columns.frames import as_batch
from pyrite.columns.joining.joining import Joining
from pyrite.columns.joining.spec import JoinSpec
from pyrite.columns.kernels import Kernels
from pyrite.keys import one_nan
from tests.columns.arrays import arrays


def expected(
    spec: JoinSpec, left: list[pa.RecordBatch], right: list[pa.RecordBatch]
) -> list[tuple[Any, ...]]:
    """The rows of the join, as tuples, in order."""
    payload = [name for name in right[0].schema.names if name not in spec.right_on]
    rights = [row for batch in right for row in batch.to_pylist()]
    table: dict[Any, list[int]] = {}
    for number, row in enumerate(rights):
        key = key_of(row, spec.right_on)
        if key is not None:
            table.setdefault(key, []).append(number)
    matched: set[int] = set()
    made: list[tuple[Any, ...]] = []
    for batch in left:
        for row in batch.to_pylist():
            key = key_of(row, spec.left_on)
            found = [] if key is None else table.get(key, [])
            values = tuple(row.values())
            if spec.only_filters:
                made += [values] if bool(found) == (spec.how == "semi") else []
                continue
            matched.update(found)
            made += [(*values, *(rights[n][name] for name in payload)) for n in found]
            if not found and spec.keeps_left:
                made.append((*values, *(None for _ in payload)))
    if spec.keeps_right:
        other_key = dict(zip(spec.left_on, spec.right_on))
        for number, row in enumerate(rights):
            if number not in matched:
                keys = {name: row[other] for name, other in other_key.items()}
                values = tuple(keys.get(name) for name in left[0].schema.names)
                made.append((*values, *(row[name] for name in payload)))
    return comparable(made)


def joined(
    spec: JoinSpec,
    left: list[Any],
    right: list[Any],
    kernels: Kernels,
    *,
    budget: int | None = None,
) -> list[tuple[Any, ...]]:
    """The rows that `Joining` makes, as tuples, in order."""
    return comparable(
        tuple(row.values())
        for batch in batches(spec, left, right, kernels, budget=budget)
        for row in batch.to_pylist()
    )


def batches(
    spec: JoinSpec,
    left: list[Any],
    right: list[Any],
    kernels: Kernels,
    *,
    budget: int | None = None,
) -> list[pa.RecordBatch]:
    joining = Joining(spec, kernels=kernels, budget=budget, vertex="join")
    try:
        for frame in right:
            joining.hold(frame)
        joining.end_held()
        frames = [made for frame in left for made in joining.match(frame)]
        frames += joining.rest()
        return [as_batch(frame) for frame in frames]
    finally:
        joining.close()


def key_of(row: dict[str, Any], names: tuple[str, ...]) -> Any:
    values = [comparable_value(row[name]) for name in names]
    return None if None in [row[name] for name in names] else tuple(values)


def comparable(rows: Any) -> list[tuple[Any, ...]]:
    return [tuple(map(comparable_value, row)) for row in rows]


def comparable_value(value: Any) -> Any:
    """A value that can be a key, and in which NaN is NaN."""
    if isinstance(value, list | tuple):
        return tuple(map(comparable_value, value))
    if isinstance(value, dict):
        return tuple((name, comparable_value(each)) for name, each in value.items())
    return one_nan(value)


def sides(
    data: st.DataObject, kinds: list[pa.DataType]
) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """The batches of two sides whose keys (k0, k1, ...) have these types. Many of them match."""
    pools = [data.draw(arrays(kind, min_size=1, max_size=4)) for kind in kinds]
    return _side(data, pools, "l"), _side(data, pools, "r")


def _side(data: st.DataObject, pools: list[pa.Array], name: str) -> list[pa.RecordBatch]:
    made, number = [], 0
    for _ in range(data.draw(st.integers(1, 3))):
        size = data.draw(st.integers(0, 6))
        columns: dict[str, Any] = {}
        for n, pool in enumerate(pools):
            chosen = data.draw(
                st.lists(st.integers(0, len(pool) - 1), min_size=size, max_size=size)
            )
            columns[f"k{n}"] = (
                as_batch(pa.record_batch([pool], ["k"]))
                .column(0)
                .take(pa.array(chosen, pa.int64()))
            )
        columns[name] = pa.array(range(number, number + size), pa.int64())
        number += size
        made.append(pa.record_batch(columns))
    return made
