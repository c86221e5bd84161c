"""The queries as lazy frames of Polars."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
from polars import col

from benchmarks.columns.dates import LAST_SHIPPED, MIDDLE, NEXT_YEAR, YEAR

REVENUE = col("l_extendedprice") * (1 - col("l_discount"))


def q1(folder: Path) -> pl.LazyFrame:
    return (
        _table(folder, "lineitem")
        .filter(col("l_shipdate") <= LAST_SHIPPED)
        .with_columns(REVENUE.alias("revenue"))
        .group_by("l_returnflag", "l_linestatus")
        .agg(
            col("l_quantity").sum().alias("sum_qty"),
            col("l_extendedprice").sum().alias("sum_base_price"),
            col("revenue").sum().alias("sum_disc_price"),
            (col("revenue") * (1 + col("l_tax"))).sum().alias("sum_charge"),
            col("l_quantity").mean().alias("avg_qty"),
            col("l_extendedprice").mean().alias("avg_price"),
            col("l_discount").mean().alias("avg_disc"),
            pl.len().cast(pl.Int64).alias("count_order"),
        )
        .sort("l_returnflag", "l_linestatus")
    )


def q3(folder: Path) -> pl.LazyFrame:
    customers = _table(folder, "customer").filter(col("c_mktsegment") == "BUILDING")
    orders = _table(folder, "orders").filter(col("o_orderdate") < MIDDLE)
    lines = _table(folder, "lineitem").filter(col("l_shipdate") > MIDDLE)
    theirs = orders.join(customers, left_on="o_custkey", right_on="c_custkey", how="semi")
    return (
        lines.join(theirs, left_on="l_orderkey", right_on="o_orderkey")
        .with_columns(REVENUE.alias("revenue"))
        .group_by("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(col("revenue").sum())
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .sort("revenue", "o_orderdate", descending=[True, False])
        .head(10)
    )


def q6(folder: Path) -> pl.LazyFrame:
    return (
        _table(folder, "lineitem")
        .filter(
            col("l_shipdate").is_between(YEAR, NEXT_YEAR, closed="left"),
            col("l_discount").is_between(0.05, 0.07),
            col("l_quantity") < 24,
        )
        .select((col("l_extendedprice") * col("l_discount")).sum().alias("revenue"))
    )


def q13(folder: Path) -> pl.LazyFrame:
    orders = (
        _table(folder, "orders")
        .filter(~col("o_comment").str.contains("special.*requests"))
        .group_by("o_custkey")
        .agg(pl.len().cast(pl.Int64).alias("c_count"))
    )
    return (
        _table(folder, "customer")
        .select("c_custkey")
        .join(orders, left_on="c_custkey", right_on="o_custkey", how="left")
        .group_by(col("c_count").fill_null(0))
        .agg(pl.len().cast(pl.Int64).alias("custdist"))
        .sort("custdist", "c_count", descending=True)
    )


def q18(folder: Path) -> pl.LazyFrame:
    large = (
        _table(folder, "lineitem")
        .group_by("l_orderkey")
        .agg(col("l_quantity").sum().alias("sum_quantity"))
        .filter(col("sum_quantity") > 300)
    )
    return (
        _table(folder, "orders")
        .join(large, left_on="o_orderkey", right_on="l_orderkey")
        .join(
            _table(folder, "customer"),
            left_on="o_custkey",
            right_on="c_custkey",
        )
        .select(
            "c_name",
            col("o_custkey").alias("c_custkey"),
            "o_orderkey",
            "o_orderdate",
            "o_totalprice",
            "sum_quantity",
        )
        .sort("o_totalprice", "o_orderdate", descending=[True, False])
        .head(100)
    )


FRAMES: dict[str, Callable[[Path], pl.LazyFrame]] = {
    "q1": q1,
    "q3": q3,
    "q6": q6,
    "q13": q13,
    "q18": q18,
}


def _table(folder: Path, name: str) -> pl.LazyFrame:
    return pl.scan_parquet(folder / name / "*.parquet")
