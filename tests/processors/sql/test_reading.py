"""read_sql in light jobs."""

from __future__ import annotations

from typing import Any

import pytest

from pyrite import DAG, Instance, between
from pyrite import processors as p
from tests.databases import Database


def read(pyr: Instance, source: Any, parallelism: int = 1) -> list[Any]:
    """What a source emits."""
    dag = DAG()
    read = dag.vertex("orders", source, local_parallelism=parallelism)
    dag.edge(between(read, dag.vertex("sink", p.write_list("read"), local_parallelism=1)))
    pyr.list("read").clear()
    pyr.new_light_job(dag).execute().result(timeout=60)
    return list(pyr.list("read"))


def orders(database: Database, *rows: str) -> Database:
    database.run("CREATE TABLE orders (id INTEGER, item VARCHAR(20))")
    if rows:
        database.run(f"INSERT INTO orders VALUES {', '.join(rows)}")
    return database


def test_a_table_is_read_as_dicts(database: Database, pyr: Instance) -> None:
    orders(database, "(1, 'tea')", "(2, NULL)")
    assert read(pyr, p.read_sql(database.url, "orders")) == [
        {"id": 1, "item": "tea"},
        {"id": 2, "item": None},
    ]


def test_a_query_is_read_with_its_parameters(database: Database, pyr: Instance) -> None:
    orders(database, "(1, 'tea')", "(2, 'rum')", "(3, 'rum')")
    query = "SELECT id AS number FROM orders WHERE item = :item ORDER BY id;"
    found = read(pyr, p.read_sql(database.url, query, parameters={"item": "rum"}))
    assert found == [{"number": 2}, {"number": 3}]


@pytest.mark.parametrize("what", ["orders", "select * from orders"])
@pytest.mark.parametrize("parallelism", [1, 3, 7])
def test_readers_share_the_rows_by_a_key(
    database: Database, pyr: Instance, what: str, parallelism: int
) -> None:
    ids = [*range(-50, 50), *([7] * 40), 1_000_000, -2_000_000]
    orders(database, *(f"({id}, 'x')" for id in ids), "(NULL, 'none')", "(NULL, 'none')")
    found = read(pyr, p.read_sql(database.url, what, key="id", batch_size=10), parallelism)
    assert sorted(row["id"] for row in found if row["item"] == "x") == sorted(ids)
    assert [row["id"] for row in found if row["item"] == "none"] == [None, None]
