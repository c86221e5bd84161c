"""Makes the frames that a join emits: takes rows of both sides and puts their columns together.

The result is a Polars frame if the left frame is one and Polars has all types of the right side's
columns. Otherwise it is an Arrow table. This does not depend on the kernels, so that both give
equal types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyrite.columns.exactly import Inexact, exact_cast
from pyrite.columns.frames import Frame, as_polars, as_table, bytes_in, rows_in
from pyrite.columns.joining.matches import Pairs, Rows
from pyrite.columns.joining.spec import JoinSpec, right_names
from pyrite.columns.polars_types import keeps
from pyrite.columns.schemas import InvalidBatch

if TYPE_CHECKING:
    import polars as pl


class ColumnsOut:
    """The columns of a join's result. `right` is None if no frame of the right side came, not even
    an empty one: then its columns are not known, and not in the result."""

    def __init__(self, spec: JoinSpec, left: pa.Schema, right: pa.Table | None, where: str) -> None:
        self._spec, self._where = spec, where
        self._left = left
        self._keys: pa.Table | None = None
        self._payload: pa.Table | None = None
        self._polars_payload: pl.DataFrame | None = None
        if right is None or spec.only_filters:
            return
        names = right_names(spec, left.names, right.column_names, where)
        payload = right.drop_columns(list(spec.right_on))
        self._payload = payload.rename_columns(names)
        if spec.keeps_right:
            self._keys = right.select(spec.right_on)
            for name, other in zip(spec.left_on, spec.right_on):
                position = left.get_field_index(name)
                if pa.types.is_null(left.field(position).type):  # any key fits
                    field = right.schema.field(other).with_name(name)
                    self._left = self._left.set(position, field)

    def pairs(self, left: Frame, pairs: Pairs) -> Frame:
        """The rows of a left frame with their matches."""
        taken = left if pairs.left is None else take(left, pairs.left)
        if self._payload is None or not self._payload.num_columns:
            return taken
        if not isinstance(taken, (pa.RecordBatch, pa.Table)):
            if (payload := self._in_polars()) is not None:
                return taken.hstack(take(payload, pairs.right).get_columns())
            taken = as_table(taken)
        found = take(self._payload, pairs.right)
        arrays = [*taken.columns, *found.columns]
        return pa.Table.from_arrays(arrays, schema=self._schema(taken.schema, found.schema))

    def alone(self, rows: Rows) -> pa.Table:
        """Right rows without a match. Their keys are in the columns of the left keys."""
        assert self._keys is not None
        assert self._payload is not None
        keys = take(self._keys, rows)
        found = take(self._payload, rows)
        columns: list[Any] = []
        for field in self._left:
            if field.name in self._spec.left_on:
                at = self._spec.left_on.index(field.name)
                columns.append(self._cast(keys.column(at), field, self._spec.right_on[at]))
            else:
                columns.append(pa.nulls(len(rows), field.type))
        columns += found.columns
        return pa.Table.from_arrays(columns, schema=self._schema(self._left, found.schema))

    def rows_within(self, left: Frame | None, most_bytes: int, most_rows: int) -> int:
        """How many rows of the result have about so many bytes, at most so many rows."""
        size = bytes_in(left) / max(1, rows_in(left)) if left is not None else 0.0
        if self._payload is not None:
            size += self._payload.nbytes / max(1, self._payload.num_rows)
        return min(most_rows, max(1, int(most_bytes / max(size, 1))))

    def _cast(self, keys: pa.ChunkedArray, field: pa.Field, name: str) -> pa.ChunkedArray:
        try:
            return keys if keys.type == field.type else exact_cast(keys, field.type)
        except Inexact as error:
            raise InvalidBatch(
                f"{self._where}: a row of the right side has no match, and its key {name!r} "
                f"({keys.type}) does not fit into the left side's {field.name!r} ({field.type}): "
                f"{error}. Cast one of them before the join"
            ) from None

    def _in_polars(self) -> pl.DataFrame | None:
        if self._polars_payload is None and self._payload is not None:
            if not all(map(keeps, self._payload.schema.types)):
                return None
            self._polars_payload = as_polars(self._payload)
        return self._polars_payload

    def _schema(self, left: pa.Schema, right: pa.Schema) -> pa.Schema:
        return pa.schema([*left, *(field.with_nullable(True) for field in right)], left.metadata)


def take(frame: Any, rows: Rows) -> Any:
    """The rows with these numbers; -1 gives a row of nulls."""
    if isinstance(frame, (pa.RecordBatch, pa.Table)):
        missing = rows < 0
        return frame.take(pa.array(rows, mask=missing if missing.any() else None))
    import polars as pl

    numbers = pl.Series(rows)
    if (rows < 0).any():
        numbers = numbers.set(numbers < 0, None)
    return frame.select(pl.all().gather(numbers))
