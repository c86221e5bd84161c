"""The datasets that a DAG reads and writes: files, tables of databases, tables of Spark."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyrite.dag import DAG
from pyrite.processors.files.reading import ReadFiles
from pyrite.processors.files.writing import WriteFiles
from pyrite.processors.spark import ReadSpark
from pyrite.processors.sql import ReadSql, WriteSql
from pyrite.processors.sql.address import Address
from pyrite.telemetry.openlineage.naming import Name, of_path, of_pattern, of_table, tables_in

logger = logging.getLogger("pyrite.telemetry")


@dataclass(frozen=True, slots=True)
class Dataset:
    name: Name
    vertex: str
    """The source that reads it, or the sink that writes it."""
    step: Any
    is_output: bool = False
    table: str | None = None
    """If it is a table of a database."""


def datasets_of(dag: DAG) -> list[Dataset]:
    """All that can be named. May ask Spark, so it may take a moment."""
    found: list[Dataset] = []
    for vertex in dag:
        step = getattr(vertex.supplier, "step", None)
        try:
            found += _datasets(vertex.name, step)
        except Exception:  # a variable of a URL is not set here; the session has ended
            logger.debug("the datasets of %r are not known", vertex.name, exc_info=True)
    return found


def query_of(dag: DAG) -> str | None:
    """The query of the job, if it has one source that is a query."""
    steps = [getattr(vertex.supplier, "step", None) for vertex in dag]
    queries = [step.query for step in steps if isinstance(step, ReadSql) and _is_query(step.query)]
    return queries[0] if len(queries) == 1 else None


def _datasets(vertex: str, step: Any) -> Iterator[Dataset]:
    if isinstance(step, ReadFiles):
        yield Dataset(of_pattern(step.pattern), vertex, step)
    elif isinstance(step, WriteFiles):
        layout = step.layout
        is_file = layout.single_file is not None and not layout.is_partitioned
        path = f"{step.dir.rstrip('/')}/{layout.single_file}" if is_file else step.dir
        yield Dataset(of_path(path), vertex, step, is_output=True)
    elif isinstance(step, ReadSql):
        tables = tables_in(step.query) if _is_query(step.query) else (step.query,)
        for table in tables:
            yield Dataset(_of_database(step.address, table), vertex, step, table=table)
    elif isinstance(step, WriteSql):
        name = _of_database(step.address, step.table)
        yield Dataset(name, vertex, step, is_output=True, table=step.table)
    elif isinstance(step, ReadSpark):
        for name in _of_frame(step.df):
            yield Dataset(name, vertex, step)


def _is_query(text: str) -> bool:
    from pyrite.processors.sql.queries import is_query

    return is_query(text)


def _of_database(address: Address, table: str) -> Name:
    url = address.resolved()
    return of_table(url.get_backend_name(), url.host, url.port, url.database, table)


def _of_frame(df: Any) -> Iterator[Name]:
    """The files and tables that a DataFrame reads, from the leaves of its plan. Over Spark Connect
    these are not known."""
    plan = df._jdf.queryExecution().analyzed()
    leaves = plan.collectLeaves()
    for number in range(leaves.size()):
        leaf = leaves.apply(number)
        if leaf.getClass().getSimpleName() == "LogicalRelation":
            table = leaf.catalogTable()
            if table.isDefined():
                yield Name("spark", table.get().identifier().unquotedString())
                continue
            paths = leaf.relation().location().rootPaths()
            for position in range(paths.size()):
                path = str(paths.apply(position))
                yield of_path(path.removeprefix("file:") if path.startswith("file:/") else path)
        elif leaf.getClass().getSimpleName() == "HiveTableRelation":
            yield Name("spark", leaf.tableMeta().identifier().unquotedString())
