"""The queries as DataFrames of Spark, as one writes them by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.columns.dates import LAST_SHIPPED, MIDDLE, NEXT_YEAR, YEAR


def q1(spark: SparkSession, folder: Path) -> DataFrame:
    revenue = _revenue()
    return (
        _table(spark, folder, "lineitem")
        .where(f.col("l_shipdate") <= f.lit(LAST_SHIPPED))
        .groupBy("l_returnflag", "l_linestatus")
        .agg(
            f.sum("l_quantity").alias("sum_qty"),
            f.sum("l_extendedprice").alias("sum_base_price"),
            f.sum(revenue).alias("sum_disc_price"),
            f.sum(revenue * (1 + f.col("l_tax"))).alias("sum_charge"),
            f.avg("l_quantity").alias("avg_qty"),
            f.avg("l_extendedprice").alias("avg_price"),
            f.avg("l_discount").alias("avg_disc"),
            f.count("*").alias("count_order"),
        )
        .orderBy("l_returnflag", "l_linestatus")
    )


def q3(spark: SparkSession, folder: Path) -> DataFrame:
    customers = _table(spark, folder, "customer").where(f.col("c_mktsegment") == "BUILDING")
    orders = _table(spark, folder, "orders").where(f.col("o_orderdate") < f.lit(MIDDLE))
    lines = _table(spark, folder, "lineitem").where(f.col("l_shipdate") > f.lit(MIDDLE))
    return (
        orders.join(customers, orders.o_custkey == customers.c_custkey, "left_semi")
        .join(lines, f.col("o_orderkey") == f.col("l_orderkey"))
        .groupBy("l_orderkey", "o_orderdate", "o_shippriority")
        .agg(f.sum(_revenue()).alias("revenue"))
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .orderBy(f.desc("revenue"), "o_orderdate")
        .limit(10)
    )


def q6(spark: SparkSession, folder: Path) -> DataFrame:
    shipped = f.col("l_shipdate")
    return (
        _table(spark, folder, "lineitem")
        .where((shipped >= f.lit(YEAR)) & (shipped < f.lit(NEXT_YEAR)))
        .where(f.col("l_discount").between(0.05, 0.07) & (f.col("l_quantity") < 24))
        .agg(f.sum(f.col("l_extendedprice") * f.col("l_discount")).alias("revenue"))
    )


def q13(spark: SparkSession, folder: Path) -> DataFrame:
    orders = _table(spark, folder, "orders").where(~f.col("o_comment").like("%special%requests%"))
    customers = _table(spark, folder, "customer")
    return (
        customers.join(orders, customers.c_custkey == orders.o_custkey, "left")
        .groupBy("c_custkey")
        .agg(f.count("o_orderkey").alias("c_count"))
        .groupBy("c_count")
        .agg(f.count("*").alias("custdist"))
        .orderBy(f.desc("custdist"), f.desc("c_count"))
    )


def q18(spark: SparkSession, folder: Path) -> DataFrame:
    large = (
        _table(spark, folder, "lineitem")
        .groupBy("l_orderkey")
        .agg(f.sum("l_quantity").alias("sum_quantity"))
        .where(f.col("sum_quantity") > 300)
    )
    return (
        _table(spark, folder, "orders")
        .join(large, f.col("o_orderkey") == f.col("l_orderkey"))
        .join(_table(spark, folder, "customer"), f.col("o_custkey") == f.col("c_custkey"))
        .select("c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice", "sum_quantity")
        .orderBy(f.desc("o_totalprice"), "o_orderdate")
        .limit(100)
    )


FRAMES: dict[str, Callable[[SparkSession, Path], DataFrame]] = {
    "q1": q1,
    "q3": q3,
    "q6": q6,
    "q13": q13,
    "q18": q18,
}


def _table(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    return spark.read.parquet(f"{folder}/{name}")


def _revenue() -> Any:
    return f.col("l_extendedprice") * (1 - f.col("l_discount"))
