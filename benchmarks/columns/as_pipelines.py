"""The queries as pipelines of batches. They call the same functions as the DAGs by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.columns import by_batches as by_hand
from pyrite import Pipeline
from pyrite import processors as p
from pyrite.pipeline import BatchStage


def q1(folder: Path) -> Pipeline:
    pipe = Pipeline()
    lines = _read(
        pipe,
        folder,
        "lineitem",
        "l_returnflag l_linestatus l_quantity l_extendedprice l_discount l_tax l_shipdate",
    )
    (
        lines.map_batches(by_hand.priced_lines, format="polars")
        .group_by("l_returnflag", "l_linestatus")
        .aggregate(
            sum_qty=("l_quantity", "sum"),
            sum_base_price=("l_extendedprice", "sum"),
            sum_disc_price=("revenue", "sum"),
            sum_charge=("charge", "sum"),
            avg_qty=("l_quantity", "mean"),
            avg_price=("l_extendedprice", "mean"),
            avg_disc=("l_discount", "mean"),
            count_order=("l_quantity", "count"),
        )
        .sort("l_returnflag", "l_linestatus")
        .write_to(p.write_list("q1"))
    )
    return pipe


def q3(folder: Path) -> Pipeline:
    pipe = Pipeline()
    customers = _read(pipe, folder, "customer", "c_custkey c_mktsegment").map_batches(
        by_hand.customers_in_segment, format="polars"
    )
    orders = (
        _read(pipe, folder, "orders", "o_orderkey o_custkey o_orderdate o_shippriority")
        .map_batches(by_hand.early_orders, format="polars")
        .join(customers, left_on="o_custkey", right_on="c_custkey", how="semi", broadcast=True)
    )
    (
        _read(pipe, folder, "lineitem", "l_orderkey l_extendedprice l_discount l_shipdate")
        .map_batches(by_hand.late_lines, format="polars")
        .join(orders, left_on="l_orderkey", right_on="o_orderkey", broadcast=True)
        .group_by("l_orderkey", "o_orderdate", "o_shippriority")
        .aggregate(revenue=("revenue", "sum"))
        .map_batches(by_hand.best_orders, format="polars")
        .sort("revenue", "o_orderdate", descending=[True, False])
        .map_batches(lambda rows: rows.slice(0, 10))
        .write_to(p.write_list("q3"))
    )
    return pipe


def q6(folder: Path) -> Pipeline:
    pipe = Pipeline()
    lines = _read(pipe, folder, "lineitem", "l_extendedprice l_discount l_quantity l_shipdate")
    discounts = lines.map_batches(by_hand.small_discounts, format="polars")
    total = discounts.group_by().aggregate(revenue=("revenue", "sum"))
    total.write_to(p.write_list("q6"))
    return pipe


def q13(folder: Path) -> Pipeline:
    pipe = Pipeline()
    counts = (
        _read(pipe, folder, "orders", "o_custkey o_comment")
        .map_batches(by_hand.plain_orders, format="polars")
        .group_by("o_custkey")
        .aggregate(c_count=("o_custkey", "count"))
    )
    (
        _read(pipe, folder, "customer", "c_custkey")
        .join(counts, left_on="c_custkey", right_on="o_custkey", how="left")
        .map_batches(by_hand.counts_or_0, format="polars")
        .group_by("c_count")
        .aggregate(custdist=("c_count", "count"))
        .sort("custdist", "c_count", descending=True)
        .write_to(p.write_list("q13"))
    )
    return pipe


def q18(folder: Path) -> Pipeline:
    pipe = Pipeline()
    large = (
        _read(pipe, folder, "lineitem", "l_orderkey l_quantity")
        .group_by("l_orderkey")
        .aggregate(sum_quantity=("l_quantity", "sum"))
        .map_batches(by_hand.large_sums, format="polars")
    )
    orders = _read(pipe, folder, "orders", "o_orderkey o_custkey o_orderdate o_totalprice").join(
        large, left_on="o_orderkey", right_on="l_orderkey", broadcast=True
    )
    (
        _read(pipe, folder, "customer", "c_custkey c_name")
        .join(orders, left_on="c_custkey", right_on="o_custkey", broadcast=True)
        .map_batches(by_hand.shown_orders, format="polars")
        .sort("o_totalprice", "o_orderdate", descending=[True, False])
        .map_batches(lambda rows: rows.slice(0, 100))
        .write_to(p.write_list("q18"))
    )
    return pipe


PIPELINES: dict[str, Callable[[Path], Pipeline]] = {
    "q1": q1,
    "q3": q3,
    "q6": q6,
    "q13": q13,
    "q18": q18,
}


def _read(pipe: Pipeline, folder: Path, table: str, columns: str) -> BatchStage:
    source = p.read_batches(f"{folder}/{table}/*.parquet", columns=columns.split())
    return pipe.read_from(source, name=table)
