"""Converts the rows of a DataFrame that a job reads to packets, and the items that a job writes to
rows of a DataFrame."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyrite.context import ProcessorContext
from pyrite.errors import InvalidDAG
from pyrite.processors.columns.row_batches import RowBatches
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import BadItem, Writer, WriteStep
from pyrite.spark.packets import ARROW_SCHEMA, NO_PARTITION
from pyrite.weights import is_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = 1 << 20
"""A row with `ROWS + id` in the `edge` column has rows for the DataFrame with that id."""

RowsFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def packets_of(members: int, edge: int, *, batches: bool) -> RowsFunction:
    """A function for `mapInArrow` that converts rows to packets of an edge, of dicts or of batches,
    and distributes these over the members."""
    packed = _in_batches if batches else _in_dicts

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task = TaskContext.get()
        sender = task.partitionId() if task is not None else 0
        for sequence, items in enumerate(packed(batches)):
            columns = [
                [(sender + sequence) % members],
                [0],
                [edge],
                [NO_PARTITION],
                [items],
                [sender],
                [sequence],
            ]
            yield pa.RecordBatch.from_arrays(
                [pa.array(c, f.type) for c, f in zip(columns, ARROW_SCHEMA)],
                schema=ARROW_SCHEMA,
            )

    return rows


def _in_dicts(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        for start in range(0, batch.num_rows, 4096):
            rows = batch.slice(start, 4096)
            yield pickle.dumps(rows.to_pylist(maps_as_pydicts="strict"), 5)


def _in_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Spark makes batches of 10,000 rows, so that many may be put together."""
    from pyrite.columns.frames import batches_of
    from pyrite.columns.packing.ipc import packed
    from pyrite.columns.packing.splitting import Pieces

    pieces = Pieces()
    for batch in batches:
        for part in batches_of(batch) if batch.num_rows else ():
            full = pieces.add(0, part)
            if full is not None:
                yield packed([full])
    yield from (packed([rest]) for _, rest in pieces.rest())


def frame_of_rows(frame: DataFrame, id: int, schema: str) -> DataFrame:
    """Selects the rows that tasks wrote for the DataFrame with this id. `frame` is the one that
    runs the job."""
    wanted = ROWS + id

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            edges = batch.column(2).to_pylist()
            for i, edge in enumerate(edges):
                if edge == wanted:
                    yield pickle.loads(batch.column(4)[i].as_buffer())

    return frame.mapInArrow(rows, schema)


@dataclass(frozen=True, slots=True)
class EmitRows(WriteStep):
    """Replaces `write_spark` inside a task. Its items leave the task as Arrow batches with the
    schema of the DataFrame."""

    id: int
    arrow_schema: pa.Schema | None

    def open(self, context: ProcessorContext) -> Writer:
        return _RowsWriter(self.id, self.arrow_schema, context)


class _RowsWriter(Writer):
    def __init__(self, id: int, schema: pa.Schema | None, context: ProcessorContext) -> None:
        self._id = id
        self._schema = schema if schema is not None else pa.schema([("item", pa.string())])
        self._as_json = schema is None
        self._context = context
        self._rows = RowBatches(self._schema, context.vertex_name, "writes rows", naive_is_utc=True)

    def write(self, items: list[Any]) -> None:
        for are_batches, run in groupby(items, is_batch):
            if are_batches and not self._as_json:
                for batch in run:
                    self._write_batch(batch)
            else:
                rows = list(run)
                self._write_rows(_rows_of(rows) if are_batches else rows)

    def _write_rows(self, items: list[Any]) -> None:
        if self._as_json:
            items = [json.dumps(item, default=str, ensure_ascii=False) for item in items]
        try:
            batch = self._rows.batch_of(items)
        except Exception as error:
            raise next(filter(None, map(self._rows.misfit, items)), error) from error
        self._tell_driver(batch)

    def _write_batch(self, batch: pa.RecordBatch) -> None:
        from pyrite.columns.frames import batches_of

        names = self._schema.names
        if sorted(batch.schema.names) != sorted(names):
            raise BadItem(
                f"vertex '{self._context.vertex_name}' writes rows with the columns "
                f"{', '.join(names)}, and got a batch with the columns "
                f"{', '.join(batch.schema.names) or 'none'}; choose the former with map_batches()",
                batch,
            )
        columns = []
        for field in self._schema:
            column = batch.column(field.name)
            try:
                columns.append(column.cast(field.type))
            except pa.ArrowException as error:
                raise BadItem(
                    f"vertex '{self._context.vertex_name}' cannot write column '{field.name}' of a "
                    f"batch, which is {column.type}, as {field.type}: {error}",
                    batch,
                ) from error
        for part in batches_of(pa.RecordBatch.from_arrays(columns, schema=self._schema)):
            self._tell_driver(part)

    def _tell_driver(self, batch: pa.RecordBatch) -> None:
        collections: Any = self._context.collections
        collections.writer.tell_driver(ROWS + self._id, batch)


def _rows_of(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict")]


def schema_of(df: DataFrame) -> pa.Schema:
    """The Arrow schema of the batches of a DataFrame."""
    from pyspark.sql.pandas.types import to_arrow_schema

    zone = df.sparkSession.conf.get("spark.sql.session.timeZone")
    return to_arrow_schema(df.schema, timezone=zone)


def arrow_schema_of(schema: str, spark: Any) -> pa.Schema:
    """Converts a schema in Spark's syntax to an Arrow schema. A timestamp without a time zone is in
    the time zone of the session."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    try:
        parsed: Any = StructType.fromDDL(schema)
        return to_arrow_schema(parsed, timezone=spark.conf.get("spark.sql.session.timeZone"))
    except Exception as error:
        raise InvalidDAG(f"'{schema}' is not a schema that Spark understands: {error}") from error


def as_rows(id: int, schema: pa.Schema | None) -> StepSupplier:
    return StepSupplier(EmitRows(id, schema))
