"""The queries as DAGs by hand whose items are batches. The same DAG runs as a light job and on
Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from polars import col

from benchmarks.columns.dates import LAST_SHIPPED, MIDDLE, NEXT_YEAR, YEAR
from pyrite import DAG, Vertex, between, from_
from pyrite import processors as p


def q1(folder: Path) -> DAG:
    dag = DAG()
    lines = _read(
        dag,
        folder,
        "lineitem",
        "l_returnflag l_linestatus l_quantity l_extendedprice l_discount l_tax l_shipdate",
    )
    priced = _mapped(dag, "priced", lines, priced_lines)
    totals = _grouped(
        dag,
        "totals",
        priced,
        ["l_returnflag", "l_linestatus"],
        {
            "sum_qty": ("l_quantity", "sum"),
            "sum_base_price": ("l_extendedprice", "sum"),
            "sum_disc_price": ("revenue", "sum"),
            "sum_charge": ("charge", "sum"),
            "avg_qty": ("l_quantity", "mean"),
            "avg_price": ("l_extendedprice", "mean"),
            "avg_disc": ("l_discount", "mean"),
            "count_order": ("l_quantity", "count"),
        },
    )
    _listed(dag, totals, "q1", ["l_returnflag", "l_linestatus"])
    return dag


def q3(folder: Path) -> DAG:
    dag = DAG()
    customers = _read(dag, folder, "customer", "c_custkey c_mktsegment")
    in_segment = _mapped(dag, "segment", customers, customers_in_segment)
    orders = _read(dag, folder, "orders", "o_orderkey o_custkey o_orderdate o_shippriority")
    early = _mapped(dag, "early", orders, early_orders)
    theirs = _joined(dag, "theirs", in_segment, "c_custkey", early, "o_custkey", "semi")
    lines = _read(dag, folder, "lineitem", "l_orderkey l_extendedprice l_discount l_shipdate")
    late = _mapped(dag, "late", lines, late_lines)
    joined = _joined(dag, "joined", theirs, "o_orderkey", late, "l_orderkey")
    revenues = _grouped(
        dag,
        "revenues",
        joined,
        ["l_orderkey", "o_orderdate", "o_shippriority"],
        {"revenue": ("revenue", "sum")},
    )
    best = _mapped(dag, "best", revenues, best_orders)
    _listed(dag, best, "q3", ["revenue", "o_orderdate"], [True, False], first=10)
    return dag


def q6(folder: Path) -> DAG:
    dag = DAG()
    lines = _read(dag, folder, "lineitem", "l_extendedprice l_discount l_quantity l_shipdate")
    small = _mapped(dag, "small", lines, small_discounts)
    revenue = {"revenue": ("revenue", "sum")}
    partial = dag.vertex("partial", p.group_batches([], revenue, partial=True))
    total = dag.vertex("total", p.group_batches([], revenue, final=True))
    dag.edge(between(small, partial)).edge(between(partial, total).distributed().all_to_one())
    dag.edge(between(total, dag.vertex("list", p.write_list("q6"))).isolated())
    return dag


def q13(folder: Path) -> DAG:
    dag = DAG()
    orders = _read(dag, folder, "orders", "o_custkey o_comment")
    plain = _mapped(dag, "plain", orders, plain_orders)
    counts = _grouped(dag, "counts", plain, ["o_custkey"], {"c_count": ("o_custkey", "count")})
    customers = _read(dag, folder, "customer", "c_custkey")
    joined = dag.vertex(
        "joined", p.join_batches(left_on=["c_custkey"], right_on=["o_custkey"], how="left")
    )
    dag.edge(
        from_(counts).to(joined, 0).distributed().partitioned(columns=["o_custkey"]).priority(-1)
    )
    dag.edge(from_(customers).to(joined, 1).distributed().partitioned(columns=["c_custkey"]))
    filled = _mapped(dag, "filled", joined, counts_or_0)
    customers_of_count = _grouped(
        dag, "customers_of_count", filled, ["c_count"], {"custdist": ("c_count", "count")}
    )
    _listed(dag, customers_of_count, "q13", ["custdist", "c_count"], [True, True])
    return dag


def q18(folder: Path, memory: int | None = None) -> DAG:
    """`memory` is that of each half of the grouping, whose states take 24 MB at scale factor 1."""
    dag = DAG()
    lines = _read(dag, folder, "lineitem", "l_orderkey l_quantity")
    quantity = {"sum_quantity": ("l_quantity", "sum")}
    sums = _grouped(dag, "sums", lines, ["l_orderkey"], quantity, memory)
    large = _mapped(dag, "large", sums, large_sums)
    orders = _read(dag, folder, "orders", "o_orderkey o_custkey o_orderdate o_totalprice")
    of_orders = _joined(dag, "of_orders", large, "l_orderkey", orders, "o_orderkey")
    customers = _read(dag, folder, "customer", "c_custkey c_name")
    of_customers = _joined(dag, "of_customers", of_orders, "o_custkey", customers, "c_custkey")
    shown = _mapped(dag, "shown", of_customers, shown_orders)
    _listed(dag, shown, "q18", ["o_totalprice", "o_orderdate"], [True, False], first=100)
    return dag


def priced_lines(lines: pl.DataFrame) -> pl.DataFrame:
    revenue = col("l_extendedprice") * (1 - col("l_discount"))
    return (
        lines.lazy()
        .filter(col("l_shipdate") <= LAST_SHIPPED)
        .with_columns(revenue.alias("revenue"), (revenue * (1 + col("l_tax"))).alias("charge"))
        .drop("l_shipdate", "l_tax")
        .collect()
    )


def customers_in_segment(customers: pl.DataFrame) -> pl.DataFrame:
    return customers.filter(col("c_mktsegment") == "BUILDING").select("c_custkey")


def early_orders(orders: pl.DataFrame) -> pl.DataFrame:
    return orders.filter(col("o_orderdate") < MIDDLE)


def late_lines(lines: pl.DataFrame) -> pl.DataFrame:
    late = lines.lazy().filter(col("l_shipdate") > MIDDLE)
    return late.select(
        "l_orderkey", (col("l_extendedprice") * (1 - col("l_discount"))).alias("revenue")
    ).collect()


def best_orders(revenues: pl.DataFrame) -> pl.DataFrame:
    """The best ones of a batch. The best ones of all are among them."""
    ordered = revenues.select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
    return ordered.sort("revenue", "o_orderdate", descending=[True, False]).head(10)


def small_discounts(lines: pl.DataFrame) -> pl.DataFrame:
    small = lines.lazy().filter(
        col("l_shipdate").is_between(YEAR, NEXT_YEAR, closed="left"),
        col("l_discount").is_between(0.05, 0.07),
        col("l_quantity") < 24,
    )
    return small.select((col("l_extendedprice") * col("l_discount")).alias("revenue")).collect()


def plain_orders(orders: pl.DataFrame) -> pl.DataFrame:
    plain = orders.filter(~col("o_comment").str.contains("special.*requests"))
    return plain.select("o_custkey")


def counts_or_0(customers: pl.DataFrame) -> pl.DataFrame:
    return customers.select(col("c_count").fill_null(0))


def large_sums(sums: pl.DataFrame) -> pl.DataFrame:
    return sums.filter(col("sum_quantity") > 300)


def shown_orders(orders: pl.DataFrame) -> pl.DataFrame:
    return orders.select(
        "c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice", "sum_quantity"
    )


DAGS: dict[str, Callable[[Path], DAG]] = {"q1": q1, "q3": q3, "q6": q6, "q13": q13, "q18": q18}


def _read(dag: DAG, folder: Path, table: str, columns: str) -> Vertex:
    source = p.read_batches(f"{folder}/{table}/*.parquet", columns=columns.split())
    return dag.vertex(table, source)


def _mapped(
    dag: DAG, name: str, source: Vertex, fn: Callable[[pl.DataFrame], pl.DataFrame]
) -> Vertex:
    mapped = dag.vertex(name, p.map_batches(fn, format="polars"))
    dag.edge(between(source, mapped))
    return mapped


def _grouped(
    dag: DAG,
    name: str,
    source: Vertex,
    by: list[str],
    aggregates: dict[str, tuple[str, str]],
    memory: int | None = None,
) -> Vertex:
    """Groups where the rows are, and then those of all."""
    partial = dag.vertex(
        f"{name}-partial", p.group_batches(by, aggregates, partial=True, memory=memory)
    )
    final = dag.vertex(name, p.group_batches(by, aggregates, final=True, memory=memory))
    dag.edge(between(source, partial))
    dag.edge(between(partial, final).distributed().partitioned(columns=by))
    return final


def _joined(
    dag: DAG, name: str, held: Vertex, key: str, flowing: Vertex, its_key: str, how: Any = "inner"
) -> Vertex:
    """Each member holds all rows of the smaller side, so the rows of the other side stay where they
    are."""
    joined = dag.vertex(name, p.join_batches(left_on=[its_key], right_on=[key], how=how))
    dag.edge(from_(held).to(joined, 0).distributed().broadcast().priority(-1))
    dag.edge(from_(flowing).to(joined, 1))
    return joined


def _listed(
    dag: DAG,
    source: Vertex,
    query: str,
    by: Sequence[str],
    descending: Sequence[bool] | None = None,
    first: int | None = None,
) -> None:
    """Sorts the rows in one place, and writes the first of them to the list of the query."""
    sort = p.sort_batches(by=by, descending=descending or False)
    last = dag.vertex("sorted", sort)
    dag.edge(between(source, last).distributed().all_to_one())
    if first is not None:
        last = _mapped(dag, "first", last, lambda rows: rows.head(first))
    dag.edge(between(last, dag.vertex("list", p.write_list(query))).isolated())
