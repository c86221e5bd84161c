"""Spark DataFrames as sources and sinks of normal jobs, so that a job can use every connector of
Spark.

This file only describes the steps; `pyrite.spark` reads and writes the DataFrames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from pyrite.context import MetaSupplierContext, ProcessorContext
from pyrite.errors import InvalidDAG, ProcessorError
from pyrite.functions import shorten
from pyrite.processors.checks import checked_function
from pyrite.processors.loops.steps import ReadStep, Writer, WriteStep
from pyrite.processors.ready_made import BatchSource, Sink, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@overload
def read_spark(df: DataFrame, *, batches: Literal[False] = False) -> Source[dict[str, Any]]: ...
@overload
def read_spark(df: DataFrame, *, batches: Literal[True]) -> BatchSource: ...
def read_spark(df: DataFrame, *, batches: bool = False) -> Source[Any]:
    """Emits each row of a Spark DataFrame as a dict; or, with `batches`, many rows at a time, each
    time a `pyarrow.RecordBatch`. Only normal jobs can use it.

    >>> from pyrite import Pipeline, processors as p
    >>> def totals(spark):  # a SparkSession
    ...     rows = Pipeline().read_from(p.read_spark(spark.read.parquet("orders")))
    ...     return rows.map(lambda row: row["total"])
    """
    if not callable(getattr(df, "mapInArrow", None)):
        raise InvalidDAG(f"read_spark() needs a Spark DataFrame; got {shorten(df)}")
    if not isinstance(batches, bool):
        raise InvalidDAG(f"batches of read_spark() must be True or False; got {shorten(batches)}")
    step = ReadSpark(df, batches)
    return BatchSource(step) if batches else Source(step)


def write_spark(save: Callable[[DataFrame], Any], schema: str) -> Sink[Any]:
    """Passes all items as a DataFrame to `save`, for example
    `p.write_spark(lambda df: df.write.parquet(path), "word string, n long")`. Only normal jobs can
    use it.

    An item is a dict with the columns of the schema, or a tuple in their order. If there is one
    column, an item can also be its value. A value that its column would change is an error, such as
    1.5 in a column of longs. An item can also be a batch of rows with these columns, a
    `pyarrow.RecordBatch`, whose types are cast to those of the schema. `save` is called once, when
    all tasks have completed.

    >>> from pyrite import Pipeline, processors as p
    >>> words = Pipeline().read_from(["a", "b"]).map(lambda word: {"word": word, "n": 1})
    >>> words.write_to(p.write_spark(lambda df: df.write.orc("words"), "word string, n long"))
    """
    if not isinstance(schema, str) or not schema:
        raise InvalidDAG(
            f"write_spark() needs a schema, such as 'word string, n long'; got {shorten(schema)}"
        )
    return Sink(WriteSpark(checked_function("write_spark", "save", save), schema))


@dataclass(frozen=True, slots=True)
class ReadSpark(ReadStep):
    df: DataFrame
    batches: bool = False
    may_hold_none = False

    def first(self, count: int) -> list[Any]:
        """The first rows, as dicts or in batches."""
        if self.batches:
            return list(self.df.limit(count).toArrow().to_batches())
        return [row.asDict(recursive=True) for row in self.df.limit(count).collect()]

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        raise ProcessorError(
            f"vertex '{context.vertex_name}' reads a Spark DataFrame, but only a normal job can "
            "do that; use new_job, not new_light_job"
        )


@dataclass(frozen=True, slots=True)
class WriteSpark(WriteStep):
    save: Callable[[DataFrame], Any]
    schema: str

    def prepare(self, context: MetaSupplierContext) -> None:
        raise ProcessorError(
            f"vertex '{context.vertex_name}' writes a Spark DataFrame, but a durable job cannot do "
            "that; write files with write_files()"
        )

    def open(self, context: ProcessorContext) -> Writer:
        raise ProcessorError(
            f"vertex '{context.vertex_name}' writes a Spark DataFrame, but only a normal job can "
            "do that; use new_job, not new_light_job"
        )
