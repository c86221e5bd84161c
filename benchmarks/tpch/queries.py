"""TPC-H queries as pipelines. Each function returns a pipeline that writes the rows of the answer,
in their order, to the named list of the query.

    pyrite run --light benchmarks.tpch.queries:q3 --set folder=tables/
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from pyrite import Pipeline, Stage, agg
from pyrite import processors as p

Row: TypeAlias = dict[str, Any]

LAST_SHIPPED = date(1998, 9, 2)
"""90 days before 1998-12-01."""
MIDDLE = date(1995, 3, 15)


def q1(folder: Path) -> Pipeline:
    """Pricing summary: totals and averages of the lines shipped so far, by their state."""
    pipe = Pipeline()
    lines = read(
        pipe,
        folder,
        "lineitem",
        "l_returnflag l_linestatus l_quantity l_extendedprice l_discount l_tax l_shipdate",
    )
    (
        lines.filter(lambda line: line["l_shipdate"] <= LAST_SHIPPED)
        .group_by(lambda line: (line["l_returnflag"], line["l_linestatus"]))
        .aggregate(
            agg.sum(lambda line: line["l_quantity"]),
            agg.sum(lambda line: line["l_extendedprice"]),
            agg.sum(discounted),
            agg.sum(lambda line: discounted(line) * (1 + line["l_tax"])),
            agg.mean(lambda line: line["l_quantity"]),
            agg.mean(lambda line: line["l_extendedprice"]),
            agg.mean(lambda line: line["l_discount"]),
            agg.count(),
        )
        .map(lambda row: (*row[0], *row[1:5], *map(float, row[5:8]), row[8]))
        .sort()
        .write_to(p.write_list("q1"))
    )
    return pipe


def q3(folder: Path) -> Pipeline:
    """Shipping priority: the unshipped orders of one market segment with the highest revenue."""
    pipe = Pipeline()
    customers = read(pipe, folder, "customer", "c_custkey c_mktsegment").filter(
        lambda customer: customer["c_mktsegment"] == "BUILDING"
    )
    orders = (
        read(pipe, folder, "orders", "o_orderkey o_custkey o_orderdate o_shippriority")
        .filter(lambda order: order["o_orderdate"] < MIDDLE)
        .join(customers, left=of("o_custkey"), right=of("c_custkey"), how="semi", broadcast=True)
        .map(lambda o: (o["o_orderkey"], o["o_orderdate"], o["o_shippriority"]))
    )
    revenues = (
        read(pipe, folder, "lineitem", "l_orderkey l_extendedprice l_discount l_shipdate")
        .filter(lambda line: line["l_shipdate"] > MIDDLE)
        .group_by(of("l_orderkey"))
        .aggregate(agg.sum(discounted))
    )
    (
        revenues.join(orders, left=lambda revenue: revenue[0], right=lambda order: order[0])
        .map(lambda pair: (*pair[0], *pair[1][1:]))
        .top(10, key=lambda row: (row[1], -row[2].toordinal()))
        .write_to(p.write_list("q3"))
    )
    return pipe


def q13(folder: Path) -> Pipeline:
    """Customer distribution: how many customers have placed how many orders."""
    pipe = Pipeline()
    customers = read(pipe, folder, "customer", "c_custkey").map(of("c_custkey"))
    orders = (
        read(pipe, folder, "orders", "o_custkey o_comment")
        .filter(lambda order: not is_special(order["o_comment"]))
        .group_by(of("o_custkey"))
        .count()
    )
    (
        customers.join(orders, left=lambda key: key, right=lambda count: count[0], how="left")
        .map(lambda pair: 0 if pair[1] is None else pair[1][1])
        .group_by(lambda count: count)
        .count()
        .sort(key=lambda row: (row[1], row[0]), reverse=True)
        .write_to(p.write_list("q13"))
    )
    return pipe


def q18(folder: Path) -> Pipeline:
    """Large orders: those with a quantity above 300, the most expensive first."""
    pipe = Pipeline()
    large = (
        read(pipe, folder, "lineitem", "l_orderkey l_quantity")
        .group_by(of("l_orderkey"))
        .aggregate(agg.sum(lambda line: line["l_quantity"]))
        .filter(lambda order: order[1] > 300)
    )
    orders = read(pipe, folder, "orders", "o_orderkey o_custkey o_orderdate o_totalprice").join(
        large, left=of("o_orderkey"), right=lambda order: order[0], broadcast=True
    )
    (
        read(pipe, folder, "customer", "c_custkey c_name")
        .join(
            orders,
            left=of("c_custkey"),
            right=lambda pair: pair[0]["o_custkey"],
            broadcast=True,
        )
        .map(lambda pair: large_order(pair[0], *pair[1]))
        .top(100, key=lambda row: (row[4], -row[3].toordinal()))
        .write_to(p.write_list("q18"))
    )
    return pipe


QUERIES: dict[str, Callable[[Path], Pipeline]] = {"q1": q1, "q3": q3, "q13": q13, "q18": q18}


def read(pipe: Pipeline, folder: Path, table: str, columns: str) -> Stage[Row]:
    """The rows of a table, with only these columns."""
    return pipe.read_from(
        p.read_files(f"{folder}/{table}/*.parquet", "parquet", columns=columns.split()), name=table
    )


def of(column: str) -> Callable[[Row], Any]:
    """A function from a row to one of its columns."""
    return lambda row: row[column]


def discounted(line: Row) -> Decimal:
    price: Decimal = line["l_extendedprice"] * (1 - line["l_discount"])
    return price


def is_special(comment: str) -> bool:
    """Whether a comment is like '%special%requests%'."""
    return "requests" in comment.partition("special")[2]


def large_order(
    customer: Row, order: Row, quantity: tuple[int, Decimal]
) -> tuple[str, int, int, date, Decimal, Decimal]:
    return (
        customer["c_name"],
        customer["c_custkey"],
        order["o_orderkey"],
        order["o_orderdate"],
        order["o_totalprice"],
        quantity[1],
    )
