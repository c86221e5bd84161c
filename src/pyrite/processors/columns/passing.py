"""Passes batches on that come from elsewhere, such as the rows of a Spark DataFrame. If there are
none, it tells which columns there would be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrite.context import ProcessorContext
from pyrite.processors.columns.steps import BatchStep, Work

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class PassBatches(BatchStep):
    schema: pa.Schema
    suits_any_processor = True

    def open(self, context: ProcessorContext) -> Work:
        return _PassWork(self.schema)


class _PassWork(Work):
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._has_given = False

    def take(self, item: Any, ordinal: int) -> Iterator[Any]:
        self._has_given = True
        yield item

    def end(self) -> Iterator[Any]:
        from pyrite.columns.frames import empty_batch

        if not self._has_given:
            yield empty_batch(self._schema)
