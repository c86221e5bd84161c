"""What is known of a dataset besides its name: how many rows, bytes and files, and its columns."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyrite.processors.files.manifest import Manifest
from pyrite.processors.files.packing import is_packed
from pyrite.processors.files.reading import ReadFiles
from pyrite.processors.files.storage import is_url, storage_of
from pyrite.processors.files.writing import WriteFiles
from pyrite.processors.spark import ReadSpark
from pyrite.processors.sql import ReadSql, WriteSql
from pyrite.telemetry.openlineage.datasets import Dataset

Columns = tuple[tuple[str, str], ...]
"""Names and types."""


@dataclass(frozen=True, slots=True)
class Facts:
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    columns: Columns = ()


def input_facts(dataset: Dataset) -> Facts:
    """What an input is when a job begins."""
    try:
        return _input_facts(dataset)
    except Exception:  # nothing matches; the job fails for that reason, with a better message
        return Facts()


def output_facts(dataset: Dataset, execution: str) -> Facts:
    """What an execution that has completed has written."""
    try:
        return _output_facts(dataset, execution)
    except Exception:
        return Facts()


def with_rows(facts: Facts, dataset: Dataset, metrics: Mapping[str, Any]) -> Facts:
    """With the rows that the source has read, or the sink has written."""
    numbers = metrics.get(dataset.vertex)
    if numbers is None:
        return facts
    lost = numbers.get("skipped", 0) + numbers.get("dead_letters", 0)
    rows = numbers.get("received", 0) - lost if dataset.is_output else numbers.get("emitted", 0)
    return replace(facts, rows=rows)


def _input_facts(dataset: Dataset) -> Facts:
    step = dataset.step
    if isinstance(step, ReadFiles):
        found = storage_of(step.pattern).find(step.pattern)
        sizes = [file.size for file in found if file.size is not None]
        columns = _columns_of_files(step.format, [file.path for file in found])
        return Facts(bytes=sum(sizes), files=len(found), columns=columns)
    if isinstance(step, ReadSql):
        return Facts(columns=_columns_of_table(dataset))
    if isinstance(step, ReadSpark):
        return Facts(columns=tuple((f.name, f.dataType.simpleString()) for f in step.df.schema))
    return Facts()


def _output_facts(dataset: Dataset, execution: str) -> Facts:
    step = dataset.step
    if isinstance(step, WriteFiles):
        manifest = Manifest.of_folder(storage_of(step.dir), step.dir)
        if manifest is None or execution not in (manifest.execution, *manifest.durable):
            return Facts()
        sizes = [int(mark.split()[0]) for mark in manifest.files.values()]
        paths = [f"{step.dir}/{name}" for name in sorted(manifest.files)]
        schema = getattr(step, "schema", None) or getattr(step.format, "schema", None)
        columns = _arrow_columns(schema) if schema is not None else ()
        return Facts(
            bytes=sum(sizes),
            files=len(sizes),
            columns=columns or _columns_of_files(step.format, paths),
        )
    if isinstance(step, WriteSql):
        return Facts(columns=_columns_of_table(dataset))
    return Facts()


def _columns_of_files(format: Any, paths: Sequence[str]) -> Columns:
    schema = getattr(format, "schema", None)
    if isinstance(schema, tuple):
        return tuple((column.name, column.type.__name__) for column in schema)
    if schema is not None:
        return _arrow_columns(schema)
    first = next((path for path in paths if not is_url(path) and not is_packed(path)), None)
    if first is None:  # what is far away is not read again
        return ()
    chosen = getattr(format, "columns", None)
    columns: Columns = ()
    if first.endswith(".parquet"):
        import pyarrow.parquet

        columns = _arrow_columns(pyarrow.parquet.read_schema(first))
    elif first.endswith(".csv"):
        with open(first, newline="", encoding="utf-8-sig") as file:
            columns = tuple((name, "string") for name in next(csv.reader(file), ()))
    return tuple(column for column in columns if chosen is None or column[0] in chosen)


def _arrow_columns(schema: Any) -> Columns:
    return tuple((field.name, str(field.type)) for field in schema)


def _columns_of_table(dataset: Dataset) -> Columns:
    from sqlalchemy import inspect

    from pyrite.processors.sql.databases import connected

    schema, _, table = (dataset.table or "").replace('"', "").rpartition(".")
    with connected(dataset.step.address) as connection:
        found = inspect(connection).get_columns(table, schema=schema or None)
    return tuple((column["name"], str(column["type"])) for column in found)
