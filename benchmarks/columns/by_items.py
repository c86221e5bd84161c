"""The queries by items: each row is a dict. All but Q6 are those of the package `tpch`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.columns.dates import NEXT_YEAR, YEAR
from benchmarks.tpch import queries
from benchmarks.tpch.queries import Row, read
from pyrite import Pipeline, agg
from pyrite import processors as p


def q6(folder: Path) -> Pipeline:
    """Forecast: what small discounts of one year cost."""
    pipe = Pipeline()
    lines = read(pipe, folder, "lineitem", "l_extendedprice l_discount l_quantity l_shipdate")
    discounts = lines.filter(_is_small).aggregate(
        agg.sum(lambda line: line["l_extendedprice"] * line["l_discount"])
    )
    discounts.map(lambda total: (total,)).write_to(p.write_list("q6"))
    return pipe


def _is_small(line: Row) -> bool:
    return bool(
        YEAR <= line["l_shipdate"] < NEXT_YEAR
        and 0.05 <= line["l_discount"] <= 0.07
        and line["l_quantity"] < 24
    )


PIPELINES: dict[str, Callable[[Path], Pipeline]] = {**queries.QUERIES, "q6": q6}
