"""Queries 3 and 18 as DAGs by hand, for a comparison with their pipelines. They call the same
functions."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.tpch.queries import MIDDLE, discounted, large_order, of
from pyrite import DAG, AbstractProcessor, Vertex, between, from_
from pyrite import processors as p


def q3(folder: Path) -> DAG:
    dag = DAG()
    customers = _read(dag, folder, "customer", "c_custkey c_mktsegment")
    in_segment = dag.vertex("segment", p.filter(lambda c: c["c_mktsegment"] == "BUILDING"))
    orders = _read(dag, folder, "orders", "o_orderkey o_custkey o_orderdate o_shippriority")
    early = dag.vertex("early", p.filter(lambda order: order["o_orderdate"] < MIDDLE))
    theirs = dag.vertex("theirs", OrdersOfCustomers)
    shown = dag.vertex(
        "shown", p.map(lambda o: (o["o_orderkey"], o["o_orderdate"], o["o_shippriority"]))
    )
    lines = _read(dag, folder, "lineitem", "l_orderkey l_extendedprice l_discount l_shipdate")
    late = dag.vertex("late", p.filter(lambda line: line["l_shipdate"] > MIDDLE))
    partial, revenues = _sums(dag, "revenue", of("l_orderkey"), discounted)
    joined = dag.vertex("joined", lambda: Join(lambda order: order[0], lambda revenue: revenue[0]))
    rows = dag.vertex("rows", p.map(lambda pair: (*pair[0], *pair[1][1:])))
    dag.edge(between(customers, in_segment)).edge(
        from_(in_segment).to(theirs, 0).distributed().broadcast().priority(-1)
    )
    dag.edge(between(orders, early)).edge(from_(early).to(theirs, 1)).edge(between(theirs, shown))
    dag.edge(between(lines, late)).edge(between(late, partial).isolated())
    dag.edge(
        from_(shown).to(joined, 0).distributed().partitioned(lambda order: order[0]).priority(-1)
    )
    dag.edge(from_(revenues).to(joined, 1).distributed().partitioned(lambda revenue: revenue[0]))
    dag.edge(between(joined, rows))
    _best(dag, rows, 10, lambda row: (row[1], -row[2].toordinal()), "q3")
    return dag


def q18(folder: Path) -> DAG:
    dag = DAG()
    lines = _read(dag, folder, "lineitem", "l_orderkey l_quantity")
    partial, sums = _sums(dag, "quantity", of("l_orderkey"), of("l_quantity"))
    large = dag.vertex("large", p.filter(lambda order: order[1] > 300))
    orders = _read(dag, folder, "orders", "o_orderkey o_custkey o_orderdate o_totalprice")
    of_orders = dag.vertex("of_orders", lambda: Join(lambda order: order[0], of("o_orderkey")))
    customers = _read(dag, folder, "customer", "c_custkey c_name")
    of_customers = dag.vertex(
        "of_customers", lambda: Join(lambda pair: pair[0]["o_custkey"], of("c_custkey"))
    )
    rows = dag.vertex("rows", p.map(lambda pair: large_order(pair[0], *pair[1])))
    dag.edge(between(lines, partial).isolated()).edge(between(sums, large))
    dag.edge(from_(large).to(of_orders, 0).distributed().broadcast().priority(-1))
    dag.edge(from_(orders).to(of_orders, 1))
    dag.edge(from_(of_orders).to(of_customers, 0).distributed().broadcast().priority(-1))
    dag.edge(from_(customers).to(of_customers, 1)).edge(between(of_customers, rows))
    _best(dag, rows, 100, lambda row: (row[4], -row[3].toordinal()), "q18")
    return dag


class Join(AbstractProcessor):
    """Reads all of inbound edge 0 first. Emits each item of inbound edge 1 with each of its
    matches, as (item, match)."""

    def __init__(self, first: Callable[[Any], Any], second: Callable[[Any], Any]) -> None:
        self._first, self._second = first, second
        self._table: dict[Any, list[Any]] = {}
        self._matched = self.flat_mapper(self._matches)

    def try_process_0(self, item: Any) -> None:
        self._table.setdefault(self._first(item), []).append(item)

    def try_process_1(self, item: Any) -> bool:
        return self._matched(item)

    def _matches(self, item: Any) -> list[Any]:
        return [(item, match) for match in self._table.get(self._second(item), ())]


class OrdersOfCustomers(AbstractProcessor):
    """Inbound edge 0 has the customers, and inbound edge 1 the orders. Emits their orders."""

    def __init__(self) -> None:
        self._customers: set[int] = set()

    def try_process_0(self, customer: Any) -> None:
        self._customers.add(customer["c_custkey"])

    def try_process_1(self, order: Any) -> None:
        if order["o_custkey"] in self._customers:
            self.emit(order)


def _read(dag: DAG, folder: Path, table: str, columns: str) -> Vertex:
    source = p.read_files(f"{folder}/{table}/*.parquet", "parquet", columns=columns.split())
    return dag.vertex(table, source)


def _sums(
    dag: DAG, name: str, key: Callable[[Any], Any], value: Callable[[Any], Any]
) -> tuple[Vertex, Vertex]:
    """Two vertices that sum up values by key: where the items are, and then those of all."""
    partial = dag.vertex(
        f"{name}-partial", p.group_and_accumulate(key, 0, lambda total, item: total + value(item))
    )
    sums = dag.vertex(
        name, p.group_and_accumulate(lambda kv: kv[0], 0, lambda total, kv: total + kv[1])
    )
    dag.edge(between(partial, sums).distributed().partitioned(lambda kv: kv[0]))
    return partial, sums


def _best(dag: DAG, rows: Vertex, count: int, key: Callable[[Any], Any], name: str) -> None:
    """Vertices that write the rows with the largest keys to a list, largest first."""

    def best(candidates: Iterable[Any]) -> list[Any]:
        return heapq.nlargest(count, candidates, key)

    def add(kept: list[Any], row: Any) -> None:
        kept.append(row)
        if len(kept) > 4 * count:
            kept[:] = best(kept)

    partial = dag.vertex("best-partial", p.collect(list, add))
    total = dag.vertex("best", p.collect(list, lambda kept, more: kept.extend(more)))
    listed = dag.vertex("listed", p.flat_map(best))
    dag.edge(between(rows, partial).isolated()).edge(
        between(partial, total).distributed().all_to_one()
    )
    dag.edge(between(total, listed).isolated())
    dag.edge(between(listed, dag.vertex("list", p.write_list(name))).isolated())


DAGS: dict[str, Callable[[Path], DAG]] = {"q3": q3, "q18": q18}
