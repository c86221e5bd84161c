"""Batches of results and of states, from states in memory."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns.grouping.aggregates import Aggregation, GroupSpec, parts_of
from pyrite.columns.grouping.inputs import Inputs
from pyrite.columns.grouping.types import WHOLE_SUM, as_given, result_of
from pyrite.columns.schemas import InvalidBatch
from pyrite.functions import shorten

_INT64: Final = (-(1 << 63), (1 << 63) - 1)


class Outputs:
    def __init__(self, spec: GroupSpec, inputs: Inputs, vertex: str) -> None:
        self._spec = spec
        self._inputs = inputs
        self._vertex = vertex

    def states(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of states, from one with the names and types of memory."""
        columns = self._keys(batch)
        for number, (part, kind) in enumerate(zip(self._inputs.parts, self._inputs.state_kinds)):
            columns[part.name] = as_given(batch.column(f"s{number}"), kind)
        return _batch(columns, batch.num_rows)

    def results(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of results: the columns of the key, then the aggregates in their order."""
        columns = self._keys(batch)
        for each in self._spec.aggregates:
            columns[each.name] = self._result(each, batch)
        return _batch(columns, batch.num_rows)

    def _keys(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        keys = zip(self._spec.by, self._inputs.keys, self._inputs.key_kinds)
        return {name: as_given(batch.column(key), kind) for name, key, kind in keys}

    def _result(self, aggregation: Aggregation, batch: pa.RecordBatch) -> pa.Array:
        numbers = [self._inputs.parts.index(part) for part in parts_of(aggregation)]
        columns = [batch.column(f"s{number}") for number in numbers]
        state = self._inputs.state_kinds[numbers[0]]
        if aggregation.function == "count_distinct":
            return pc.list_value_length(columns[0]).cast(pa.int64())
        if aggregation.function == "mean":
            return pc.divide(columns[0].cast(pa.float64()), columns[1].cast(pa.float64()))
        if aggregation.function == "sum" and state == WHOLE_SUM:
            try:
                return columns[0].cast(pa.int64())
            except pa.ArrowInvalid:
                raise self._overflow(aggregation, batch, columns[0]) from None
        return as_given(columns[0], result_of(aggregation.function, state))

    def _overflow(
        self, aggregation: Aggregation, batch: pa.RecordBatch, sums: pa.Array
    ) -> InvalidBatch:
        row, total = next(
            (row, total)
            for row, total in enumerate(sums.to_pylist())
            if total is not None and not _INT64[0] <= total <= _INT64[1]
        )
        return overflow(
            self._vertex,
            aggregation.column,
            f"is {int(total)}{_of_group(self._keys(batch.slice(row, 1)))}, which does not fit into "
            "an int64",
        )


def overflow(vertex: str, column: str, what: str) -> InvalidBatch:
    return InvalidBatch(
        f"vertex '{vertex}': the sum of column {column!r} {what}; convert the column to float64 "
        "before, for example with map_batches"
    )


def _of_group(keys: dict[str, Any]) -> str:
    values = ", ".join(f"{name} = {shorten(key[0].as_py())}" for name, key in keys.items())
    return f" for the group {values}" if values else ""


def _batch(columns: dict[str, Any], rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
