"""The doors between rows and batches: `rows` emits the rows of batches one by one, and `batches`
puts items together into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pyrite.context import ProcessorContext
from pyrite.errors import PyriteError
from pyrite.processors.columns.arrow_types import ArrowSchema
from pyrite.processors.columns.row_batches import RowBatches
from pyrite.processors.columns.steps import BatchStep, Work
from pyrite.processors.loops.steps import BadItem
from pyrite.processors.ready_made import Inner
from pyrite.weights import is_batch

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 2048
ROWS_PER_BATCH = 1 << 16
ITEMS_AT_ONCE = 8192
"""How many items are converted together, at most. What is converted waits as columns, which take
less memory than objects."""


def rows() -> Inner:
    """Emits each row of the batches that it gets as a dict, with the columns in their order.

    >>> import pyarrow as pa
    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> batch = pa.record_batch({"n": [1, 2], "word": ["a", None]})
    >>> verify_processor(p.rows(), [batch], [{"n": 1, "word": "a"}, {"n": 2, "word": None}])
    """
    return Inner(Rows())


def batches(schema: ArrowSchema | Mapping[str, Any]) -> Inner:
    """Puts the items that it gets together into batches with this schema: a `pyarrow.Schema`, or a
    dict of names and types, such as `{"word": "string", "n": "int64"}`. An item is a dict with
    these columns, or a tuple in their order; a column that a dict lacks is null. A batch with
    these columns is passed on.

    >>> import pyarrow as pa
    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> words = p.batches({"word": "string", "n": "int64"})
    >>> batch = pa.record_batch({"word": ["a", "b"], "n": [1, 2]})
    >>> verify_processor(words, [("a", 1), {"word": "b", "n": 2}], [batch])
    """
    from pyrite.columns.given import checked_schema

    return Inner(Batches(checked_schema(schema, "batches()")))


@dataclass(frozen=True, slots=True)
class Rows(BatchStep):
    gives_items = True
    suits_any_processor = True

    def open(self, context: ProcessorContext) -> Work:
        return _RowsWork(context.vertex_name)


class _RowsWork(Work):
    def __init__(self, vertex: str) -> None:
        self._vertex = vertex

    def take(self, item: Any, ordinal: int) -> Iterator[Any]:
        from pyrite.columns.frames import as_batch
        from pyrite.columns.schemas import ambiguous_column

        batch = as_batch(item)
        names = batch.schema.names
        if len(set(names)) < len(names):  # a dict would have only the last of them
            twice = next(name for name in names if names.count(name) > 1)
            raise ambiguous_column(twice, f"vertex '{self._vertex}'")
        for start in range(0, batch.num_rows, ROWS_AT_ONCE):
            yield batch.slice(start, ROWS_AT_ONCE).to_pylist(maps_as_pydicts="strict")


@dataclass(frozen=True, slots=True)
class Batches(BatchStep):
    schema: pa.Schema
    takes_items = True
    suits_any_processor = True
    handles_errors = True

    def open(self, context: ProcessorContext) -> Work:
        return _BatchesWork(self.schema, context.vertex_name)


class _BatchesWork(Work):
    has_state = True

    def __init__(self, schema: pa.Schema, vertex: str) -> None:
        from pyrite.columns.dictionaries import dictionary_columns

        self._schema = schema
        self._encoded = dictionary_columns(schema)
        self._vertex = vertex
        self._made = RowBatches(schema, vertex, "makes batches")
        self._parts: list[pa.RecordBatch] = []
        self._rows = 0
        self._has_given = False

    def take(self, item: Any, ordinal: int) -> Iterator[Any]:
        import pyarrow as pa

        if pa.RecordBatch not in set(map(type, item)):
            yield from self._put_together(item)
            return
        for is_batches, some in groupby(item, is_batch):
            if not is_batches:
                yield from self._put_together(list(some))
                continue
            if self._rows:
                yield self._batch()
            self._has_given = True
            for batch in some:
                yield from self._passed(batch)

    def _passed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """A batch that came as an item. It must have the columns of the schema already."""
        from pyrite.columns.frames import as_batch
        from pyrite.columns.schemas import checked

        try:
            yield checked(as_batch(batch), self._schema, f"vertex '{self._vertex}'")
        except PyriteError as error:
            self._refuse(batch, BadItem(str(error), batch))

    def _put_together(self, items: list[Any]) -> Iterator[Any]:
        from pyrite.columns.dictionaries import fit_together

        for start in range(0, len(items), ITEMS_AT_ONCE):
            for part in self._converted(items[start : start + ITEMS_AT_ONCE]):
                if self._rows and not fit_together([*self._parts, part], self._encoded):
                    yield self._batch()
                self._parts.append(part)
                self._rows += part.num_rows
                if self._rows >= ROWS_PER_BATCH:
                    yield self._batch()

    def end(self) -> Iterator[Any]:
        if self._rows or not self._has_given:  # the next step must know the columns
            yield self._batch()

    def save(self) -> Iterable[tuple[Any, Any]]:
        return list(enumerate(self._parts))

    def restore(self, key: Any, value: Any) -> None:
        self._parts.append(value)
        self._rows += value.num_rows

    def _batch(self) -> Any:
        import pyarrow as pa

        from pyrite.columns.frames import as_batch

        parts, self._parts, self._rows, self._has_given = self._parts, [], 0, True
        return as_batch(pa.Table.from_batches(parts, self._schema))

    def _converted(self, items: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        try:
            made = self._made.batch_of(items)
        except Exception:
            yield from self._halved([item for item in items if self._fits(item)])
        else:
            yield made

    def _halved(self, items: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        """Batches of items each of which can be a row. Together they may have more values than the
        index of a dictionary has numbers."""
        try:
            made = self._made.batch_of(items)
        except Exception:
            if len(items) < 2 or not self._encoded:
                raise
            half = len(items) // 2
            yield from self._halved(items[:half])
            yield from self._halved(items[half:])
        else:
            yield made

    def _fits(self, item: Any) -> bool:
        """Whether an item can be a row. If not, it is a bad record, or it fails the job."""
        bad = self._made.misfit(item)
        if bad is not None:
            self._refuse(item, bad)
        return bad is None

    def _refuse(self, item: Any, bad: BadItem) -> None:
        if self.handler is None:
            raise bad
        self.handler(item, bad)
