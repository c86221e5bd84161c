"""write_sql in light jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, Instance, JobFailed, between
from pyrite import processors as p
from tests.databases import Database


def job(items: Sequence[Any], sink: Any, parallelism: int = 1) -> DAG:
    dag = DAG()
    read = dag.vertex("read", p.read_items(items), local_parallelism=parallelism)
    written = dag.vertex("orders", sink, local_parallelism=parallelism)
    dag.edge(between(read, written))
    return dag


def write(pyr: Instance, items: Sequence[Any], sink: Any, parallelism: int = 1) -> None:
    pyr.new_light_job(job(items, sink, parallelism)).execute().result(timeout=60)


def why_not(pyr: Instance, items: Sequence[Any], sink: Any) -> JobFailed:
    with pytest.raises(JobFailed) as raised:
        write(pyr, items, sink)
    return raised.value


def with_orders(database: Database, *more: str) -> Database:
    database.run(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, item VARCHAR(20), n INTEGER DEFAULT 5)", *more
    )
    return database


def orders(ids: Sequence[int], item: str = "tea") -> list[dict[str, Any]]:
    return [{"id": id, "item": item, "n": 1} for id in ids]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_items_become_rows(database: Database, pyr: Instance, parallelism: int) -> None:
    with_orders(database)
    write(pyr, orders(range(250)), p.write_sql(database.url, "orders", batch_size=20), parallelism)
    found = database.rows("SELECT * FROM orders ORDER BY id")
    assert found == [(id, "tea", 1) for id in range(250)]
    assert database.tables() == ["orders"]


def test_appending_twice_adds_rows(database: Database, pyr: Instance) -> None:
    with_orders(database)
    for ids in (range(3), range(3, 5)):
        write(pyr, orders(ids), p.write_sql(database.url, "orders"))
    assert database.rows("SELECT count(*) FROM orders") == [(5,)]


def test_with_a_key_rows_are_updated_or_added(database: Database, pyr: Instance) -> None:
    with_orders(database, "INSERT INTO orders VALUES (1, 'old', 1), (9, 'kept', 1)")
    sink = p.write_sql(database.url, "orders", key="id")
    for _ in range(2):
        write(pyr, orders([1, 2, 3], "new"), sink, 2)
    found = database.rows("SELECT id, item FROM orders ORDER BY id")
    assert found == [(1, "new"), (2, "new"), (3, "new"), (9, "kept")]


def test_the_last_item_with_a_key_wins(database: Database, pyr: Instance) -> None:
    with_orders(database)
    items = [{"id": 1, "item": str(number), "n": 0} for number in range(50)]
    write(pyr, items, p.write_sql(database.url, "orders", key=("id",), batch_size=7))
    assert database.rows("SELECT item FROM orders") == [("49",)]


def test_replacing_deletes_what_was_there(database: Database, pyr: Instance) -> None:
    with_orders(database, "INSERT INTO orders VALUES (1, 'old', 1), (9, 'old', 1)")
    write(pyr, orders([1, 2]), p.write_sql(database.url, "orders", mode="replace"))
    assert database.rows("SELECT id, item FROM orders ORDER BY id") == [(1, "tea"), (2, "tea")]


def test_fields_that_an_item_lacks_get_the_default_and_are_not_updated(
    database: Database, pyr: Instance
) -> None:
    with_orders(database, "INSERT INTO orders VALUES (1, 'old', 1)")
    items = [{"id": 1, "n": 7}, {"id": 2, "item": "new"}, {"id": 3}]
    write(pyr, items, p.write_sql(database.url, "orders", key="id"))
    found = database.rows("SELECT * FROM orders ORDER BY id")
    assert found == [(1, "old", 7), (2, "new", 5), (3, None, 5)]


def test_only_the_named_columns_are_written(database: Database, pyr: Instance) -> None:
    with_orders(database)
    items = [{"id": 1, "n": 7, "secret": "x"}, {"id": 2}]
    write(pyr, items, p.write_sql(database.url, "orders", columns=["id", "n"]))
    assert database.rows("SELECT * FROM orders ORDER BY id") == [(1, None, 7), (2, None, None)]


def test_a_missing_table_is_made(database: Database, pyr: Instance) -> None:
    types = {"id": int, "item": str | None}
    sink = p.write_sql(database.url, "made", create=types, key="id")
    for item in ("tea", None):
        write(pyr, [{"id": 1, "item": item}], sink)
    assert database.rows("SELECT * FROM made") == [(1, None)]


def test_no_items_are_no_rows(database: Database, pyr: Instance) -> None:
    with_orders(database)
    write(pyr, [], p.write_sql(database.url, "orders"))
    assert database.rows("SELECT * FROM orders") == []


def test_a_job_that_fails_changes_nothing(
    database: Database, pyr: Instance, tmp_path: Path
) -> None:
    with_orders(database, "INSERT INTO orders VALUES (1, 'old', 1)")
    items = [*orders(range(2, 100)), {"id": 1, "item": "twice", "n": 1}]
    error = why_not(pyr, items, p.write_sql(database.url, "orders", batch_size=10))
    assert "vertex 'orders' cannot write its rows to table 'orders'" in str(error)
    assert "key=..." in str(error)
    assert database.rows("SELECT id FROM orders") == [(1,)]
    assert database.tables() == ["orders"]
    assert [each.name for each in tmp_path.iterdir()] in ([], ["shop.db"])


def test_a_job_that_fails_makes_no_table(database: Database, pyr: Instance, tmp_path: Path) -> None:
    items = [{"id": 1}, {"id": 1}]
    sink = p.write_sql(database.url, "made", create={"id": int}, key="id", mode="append")
    assert "cannot write its rows to table 'made'" in str(why_not(pyr, items, sink))
    assert list(tmp_path.iterdir()) == []
    assert database.tables() == []


def test_sinks_of_one_job_change_a_database_together(database: Database, pyr: Instance) -> None:
    with_orders(database, "CREATE TABLE other (id INTEGER NOT NULL CHECK (id < 5))")
    dag = DAG()
    read = dag.vertex("read", p.read_items([{"id": 1}, {"id": 2}]))
    dag.edge(between(read, dag.vertex("a", p.write_sql(database.url, "orders"))))
    b = dag.vertex("b", p.map(lambda item: {"id": item["id"] * 4}))
    from pyrite import from_

    dag.edge(from_(read, 1).to(b))
    dag.edge(between(b, dag.vertex("c", p.write_sql(database.url, "other"))))
    with pytest.raises(JobFailed) as raised:
        pyr.new_light_job(dag).execute().result(timeout=60)
    assert raised.value.vertex == "c"
    assert database.rows("SELECT * FROM orders") == []


def test_a_job_reads_and_writes_the_same_database(database: Database, pyr: Instance) -> None:
    with_orders(database)
    write(pyr, orders(range(3000)), p.write_sql(database.url, "orders"))
    dag = DAG()
    read = dag.vertex("read", p.read_sql(database.url, "orders", batch_size=100))
    more = dag.vertex("more", p.map(lambda row: {**row, "n": row["n"] + 1}))
    dag.edge(between(read, more))
    dag.edge(between(more, dag.vertex("w", p.write_sql(database.url, "orders", key="id"))))
    pyr.new_light_job(dag).execute().result(timeout=60)
    assert database.rows("SELECT n, count(*) FROM orders GROUP BY n") == [(2, 3000)]
