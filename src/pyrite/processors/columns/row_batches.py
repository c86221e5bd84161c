"""Batches made of items that are rows: dicts, tuples, or the values of a single column. An item is
refused if one of its values would change in its column."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyrite.functions import shorten
from pyrite.processors.loops.steps import BadItem

if TYPE_CHECKING:
    import pyarrow as pa


class RowBatches:
    """`does` is what the vertex does with rows, for errors, such as `makes batches`."""

    def __init__(
        self, schema: pa.Schema, vertex: str, does: str, *, naive_is_utc: bool = False
    ) -> None:
        """With `naive_is_utc`, a datetime without a zone fits a column of moments."""
        self._schema = schema
        self._names: list[str] = schema.names
        self._known = frozenset(self._names)
        self._vertex = vertex
        self._does = does
        self._naive_is_utc = naive_is_utc

    def batch_of(self, items: Sequence[Any]) -> pa.RecordBatch:
        """Raises BadItem, or another exception for which `misfit` finds the reason, if one of the
        items does not fit."""
        import pyarrow as pa

        rows = [self._row(item) for item in items]
        columns = [
            self._column([row[i] for row in rows], field.type)
            for i, field in enumerate(self._schema)
        ]
        for field, column in zip(self._schema, columns):
            if not field.nullable and column.null_count:
                raise ValueError(f"column '{field.name}' is null, but its schema says not null")
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def misfit(self, item: Any) -> BadItem | None:
        """The reason why an item cannot be a row; None if it can."""
        try:
            self.batch_of([item])
        except BadItem as error:
            return error
        except Exception as error:
            bad = self._of_column(item) or BadItem(
                f"vertex '{self._vertex}' cannot make a row of {shorten(item)}: {error}", item
            )
            bad.__cause__ = error
            return bad
        return None

    def _column(self, values: list[Any], kind: pa.DataType) -> pa.Array:
        import pyarrow as pa

        from pyrite.columns.exactly import exact_array

        if self._naive_is_utc and pa.types.is_timestamp(kind) and kind.tz is not None:
            values = [
                value.replace(tzinfo=UTC)
                if isinstance(value, datetime) and value.tzinfo is None
                else value
                for value in values
            ]
        return exact_array(values, kind)

    def _of_column(self, item: Any) -> BadItem | None:
        for value, field in zip(self._row(item), self._schema):
            try:
                self._column([value], field.type)
            except Exception as error:
                return BadItem(
                    f"vertex '{self._vertex}' cannot put {shorten(value)} of type "
                    f"{type(value).__name__} into column '{field.name}' of type {field.type}: "
                    f"{error}",
                    item,
                )
        return None

    def _row(self, item: Any) -> Sequence[Any]:
        names = self._names
        if isinstance(item, dict):
            if item.keys() <= self._known:
                return [item.get(name) for name in names]
        elif isinstance(item, (tuple, list)):
            if len(item) == len(names):
                return item
        elif len(names) == 1:
            return (item,)
        raise BadItem(
            f"vertex '{self._vertex}' {self._does} with the columns {', '.join(names)}; an item "
            "must be a dict with no other columns, or a tuple with a value for each; got "
            f"{shorten(item)}",
            item,
        )
