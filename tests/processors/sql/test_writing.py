"""write_sql in light jobs."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest

from pyrite import DAG, Instance, InvalidDAG, JobCancelled, JobFailed, between, from_
from pyrite import processors as p
from pyrite.processors.sql import databases
from pyrite.processors.sql.address import Address
from pyrite.testing import verify_processor
from tests.databases import Database
from tests.postgres import PostgresServer


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


@pytest.mark.parametrize("existing", [[], [(1, "old", 0)]])
def test_the_last_item_that_has_a_field_wins(
    database: Database, pyr: Instance, existing: list[Any]
) -> None:
    with_orders(database, *(f"INSERT INTO orders VALUES {row}" for row in existing))
    items = [{"id": 1, "item": "a", "n": 1}, {"id": 1, "n": 2}, {"id": 2}, {"id": 1, "item": "c"}]
    items += [{"id": 3, "n": 4}, {"id": 3, "n": None}, {"id": 3, "item": "d"}]
    write(pyr, items, p.write_sql(database.url, "orders", key="id", batch_size=2))
    found = database.rows("SELECT * FROM orders ORDER BY id")
    assert found == [(1, "c", 2), (2, None, 5), (3, "d", None)]


@pytest.mark.parametrize("seed", range(3))
def test_items_with_different_fields_are_written_as_if_one_by_one(
    tmp_path: Path, pyr: Instance, seed: int
) -> None:
    database = with_orders(Database(f"sqlite:///{tmp_path}/shop.db"))
    chance = Random(seed)
    items: list[dict[str, Any]] = []
    expected: dict[int, dict[str, Any]] = {}
    for number in range(60):
        fields = {name: f"{number}" if name == "item" else number for name in ("item", "n")}
        some = {name: fields[name] for name in fields if chance.random() < 0.6}
        items.append({"id": chance.randrange(8), **some})
        id = items[-1]["id"]
        expected[id] = {**expected.get(id, {"item": None, "n": 5}), **some}
    write(pyr, items, p.write_sql(database.url, "orders", key="id", batch_size=7))
    found = {id: {"item": item, "n": n} for id, item, n in database.rows("SELECT * FROM orders")}
    assert found == expected


def test_jobs_that_update_the_same_rows_lock_them_in_the_same_order(
    shared_postgres: PostgresServer, pyr: Instance
) -> None:
    database = with_orders(Database(shared_postgres.new_schema()))
    write(pyr, orders([5, 1, 4, 2, 3]), p.write_sql(database.url, "orders", key="id"))
    found = database.rows("SELECT id FROM orders ORDER BY ctid")  # as they were added
    assert found == [(1,), (2,), (3,), (4,), (5,)]


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


def test_the_harness_for_processors_writes_rows(tmp_path: Path) -> None:
    database = with_orders(Database(f"sqlite:///{tmp_path}/shop.db"))
    verify_processor(p.write_sql(database.url, "orders", key="id"), orders([1, 2]), [])
    assert database.rows("SELECT count(*) FROM orders") == [(2,)]


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
    assert "vertex 'orders' cannot write item {'id': 1, 'item': 'twice', 'n': 1}" in str(error)
    assert "key=..." in str(error)
    assert error.item == items[-1]
    assert database.rows("SELECT id FROM orders") == [(1,)]
    assert database.tables() == ["orders"]
    assert [each.name for each in tmp_path.iterdir()] in ([], ["shop.db"])


def test_a_job_that_fails_makes_no_table(database: Database, pyr: Instance, tmp_path: Path) -> None:
    items = [{"id": 1}, {"id": 1}]
    sink = p.write_sql(database.url, "made", create={"id": int}, key="id", mode="append")
    assert "cannot write item {'id': 1} to table 'made'" in str(why_not(pyr, items, sink))
    assert list(tmp_path.iterdir()) == []
    assert database.tables() == []


def test_sinks_of_one_job_change_a_database_together(database: Database, pyr: Instance) -> None:
    with_orders(database, "CREATE TABLE other (id INTEGER NOT NULL CHECK (id < 5))")
    dag = DAG()
    read = dag.vertex("read", p.read_items([{"id": 1}, {"id": 2}]))
    dag.edge(between(read, dag.vertex("a", p.write_sql(database.url, "orders"))))
    b = dag.vertex("b", p.map(lambda item: {"id": item["id"] * 4}))
    dag.edge(from_(read, 1).to(b))
    dag.edge(between(b, dag.vertex("c", p.write_sql(database.url, "other"))))
    with pytest.raises(JobFailed) as raised:
        pyr.new_light_job(dag).execute().result(timeout=60)
    assert raised.value.vertex == "c"
    assert database.rows("SELECT * FROM orders") == []


def two_sinks(first: Any, second: Any) -> DAG:
    dag = DAG()
    read = dag.vertex("read", p.read_items([{"id": 1}]))
    dag.edge(between(read, dag.vertex("a", first)))
    more = dag.vertex("more", p.map(lambda item: {"id": item["id"] + 1}))
    dag.edge(from_(read, 1).to(more))
    dag.edge(between(more, dag.vertex("b", second)))
    return dag


@pytest.mark.parametrize("mode", ["replace", "append", "upsert"])
def test_two_sinks_for_a_table_that_one_of_them_replaces_are_refused(
    database: Database, pyr: Instance, mode: Any
) -> None:
    with_orders(database)
    replaces = p.write_sql(database.url, "orders", mode="replace")
    other = p.write_sql(database.url, "orders", mode=mode, key="id")
    for sinks in ((replaces, other), (other, replaces)):
        with pytest.raises(InvalidDAG, match="'a' and 'b' both write to table 'orders' of "):
            pyr.new_light_job(two_sinks(*sinks)).execute().result(timeout=60)


def test_two_sinks_add_rows_to_the_same_table(database: Database, pyr: Instance) -> None:
    with_orders(database)
    added, updated = (p.write_sql(database.url, "orders", key=key) for key in (None, "id"))
    pyr.new_light_job(two_sinks(added, updated)).execute().result(timeout=60)
    assert database.rows("SELECT id FROM orders ORDER BY id") == [(1,), (2,)]


def test_tables_that_refer_to_each_other_are_replaced_together(
    database: Database, pyr: Instance
) -> None:
    with_orders(database, "CREATE TABLE parts (id INTEGER REFERENCES orders (id))")
    for start in (0, 5):
        dag = DAG()
        read = dag.vertex("read", p.read_items([{"id": start}, {"id": start + 1}]))
        for ordinal, table in enumerate(("orders", "parts")):
            sink = dag.vertex(table, p.write_sql(database.url, table, mode="replace"))
            dag.edge(from_(read, ordinal).to(sink))
        pyr.new_light_job(dag).execute().result(timeout=60)
    for table in ("orders", "parts"):
        assert database.rows(f"SELECT id FROM {table} ORDER BY id") == [(5,), (6,)]


def other_urls(database: Database) -> list[str]:
    """Other ways to write the URL of the same database."""
    if not database.is_sqlite:
        return [database.url.replace("postgresql:", "postgresql+psycopg:")]
    path = Path(database.url.removeprefix("sqlite:///"))
    path.with_name("link.db").symlink_to(path)
    return [
        f"sqlite+pysqlite:///{path}",
        f"sqlite:///{path}?timeout=5",
        f"sqlite:///{path.with_name('link.db')}",
    ]


def test_urls_of_the_same_database_share_a_transaction(
    database: Database, pyr: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "BUSY_SECONDS", 1)
    with_orders(database, "CREATE TABLE other (id INTEGER PRIMARY KEY)")
    for url in other_urls(database):
        sinks = (p.write_sql(each, "orders", key="id") for each in (database.url, url))
        pyr.new_light_job(two_sinks(*sinks)).execute().result(timeout=60)
    assert database.rows("SELECT id FROM orders ORDER BY id") == [(1,), (2,)]


def test_two_transactions_of_a_job_do_not_wait_for_each_other_forever(
    shared_postgres: PostgresServer, pyr: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "BUSY_SECONDS", 1)
    database = with_orders(Database(shared_postgres.new_schema()))
    urls = (database.url, f"{database.url}&application_name=other")
    dag = DAG()
    read = dag.vertex("read", p.read_items([{"id": 1}]))
    for ordinal, url in enumerate(urls):
        sink = dag.vertex(f"sink{ordinal}", p.write_sql(url, "orders", key="id"))
        dag.edge(from_(read, ordinal).to(sink))
    with pytest.raises(JobFailed, match="use the same user and the same URL for both"):
        pyr.new_light_job(dag).execute().result(timeout=60)
    assert database.rows("SELECT * FROM orders") == []


def test_a_place_has_one_name_whatever_the_url() -> None:
    urls = ["postgresql://app:a@Db/shop", "postgres://app:b@db:5432/shop"]
    assert {Address(url).place() for url in urls} == {"postgresql://app@db:5432/shop"}
    assert Address("postgresql://app:${NO_SUCH}@db/shop").place() == "postgresql://app@db:5432/shop"
    assert Address("${NO_SUCH}").place() == "${NO_SUCH}"


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


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ("text", "it is not a dict from columns to values"),
        ({}, "it has no fields"),
        ({"id": 1, "price": 2}, "the table has no column 'price'; it has: id, item, n"),
        ({"id": 1, 7: 2}, "the table has no column 7"),
        ({"id": 1, "item": "x" * 21}, ""),
    ],
)
def test_an_item_that_is_no_row_is_named(
    database: Database, pyr: Instance, item: Any, why: str
) -> None:
    with_orders(database)
    if database.is_sqlite and not why:
        return  # SQLite takes texts of any length
    error = why_not(pyr, [*orders(range(50)), item], p.write_sql(database.url, "orders"))
    assert f"vertex 'orders' cannot write item {item!r:.10}" in str(error)
    assert why in str(error)
    assert (error.vertex, error.item) == ("orders", item)
    assert database.rows("SELECT * FROM orders") == []


@pytest.mark.parametrize("item", [{"n": 1}, {"id": None, "n": 1}])
def test_an_update_needs_a_key_in_each_item(database: Database, pyr: Instance, item: Any) -> None:
    with_orders(database)
    error = str(why_not(pyr, [item], p.write_sql(database.url, "orders", key="id")))
    assert "it has no field 'id', which is of the key" in error or "must not be NULL" in error


def test_a_column_that_must_have_a_value_is_named(database: Database, pyr: Instance) -> None:
    database.run("CREATE TABLE strict (a INTEGER NOT NULL, b INTEGER NOT NULL DEFAULT 1)")
    sink = p.write_sql(database.url, "strict")
    assert "it has no field 'a', and that column has no" in str(why_not(pyr, [{"b": 1}], sink))
    assert "column 'b' must not be NULL" in str(why_not(pyr, [{"a": 1, "b": None}], sink))
    write(pyr, [{"a": 1}], sink)
    assert database.rows("SELECT * FROM strict") == [(1, 1)]


def test_what_cannot_be_written_is_known_before_any_work(database: Database, pyr: Instance) -> None:
    with_orders(database)
    begun: list[int] = []
    dag = DAG()
    read = dag.vertex("read", p.read_items([1, 2]))
    made = dag.vertex("made", p.map(begun.append))
    dag.edge(between(read, made))
    dag.edge(between(made, dag.vertex("orders", p.write_sql(database.url, "orders", key="item"))))
    with pytest.raises(JobFailed, match=r"CREATE UNIQUE INDEX orders_key ON orders \(item\)"):
        pyr.new_light_job(dag).execute().result(timeout=60)
    assert begun == []


def test_a_missing_table_is_named(database: Database, pyr: Instance) -> None:
    with_orders(database)
    error = str(why_not(pyr, [{"id": 1}], p.write_sql(database.url, "order")))
    assert (
        "uses the table 'order', which the database does not have; did you mean 'orders'" in error
    )


def test_a_job_that_is_cancelled_changes_nothing(
    database: Database, pyr: Instance, tmp_path: Path
) -> None:
    with_orders(database)
    waits, goes_on = Event(), Event()

    def wait(item: Any) -> Any:
        if item["id"] == 500:
            waits.set()
            goes_on.wait(30)
        return item

    dag = DAG()
    read = dag.vertex("read", p.read_items(orders(range(1000))), local_parallelism=1)
    waiting = dag.vertex("waiting", p.map(wait), local_parallelism=1)
    dag.edge(between(read, waiting))
    sink = p.write_sql(database.url, "orders", batch_size=10)
    dag.edge(between(waiting, dag.vertex("orders", sink, local_parallelism=1)))
    execution = pyr.new_light_job(dag).execute()
    assert waits.wait(30)
    execution.cancel()
    goes_on.set()
    with pytest.raises(JobCancelled):
        execution.result(timeout=30)
    assert (database.rows("SELECT * FROM orders"), database.tables()) == ([], ["orders"])
    database.run("DROP TABLE orders")  # waits as long as somebody is connected to it
    assert [each.name for each in tmp_path.iterdir()] in ([], ["shop.db"])


def test_a_table_of_another_schema_is_written(
    shared_postgres: PostgresServer, pyr: Instance
) -> None:
    database = Database(shared_postgres.new_schema())
    database.run(
        "CREATE SCHEMA sales_of_a_test", "CREATE TABLE sales_of_a_test.orders (id INTEGER)"
    )
    write(pyr, [{"id": 1}], p.write_sql(database.url, "sales_of_a_test.orders"))
    assert database.rows("SELECT * FROM sales_of_a_test.orders") == [(1,)]
    database.run("DROP SCHEMA sales_of_a_test CASCADE")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"mode": "upsert"}, "needs key=..."),
        ({"mode": "delete"}, "mode of write_sql"),
        ({"key": "id", "columns": ["n"]}, "must have the key"),
        ({"key": []}, "key of write_sql"),
        ({"create": {}}, "create of write_sql"),
        ({"create": {"n": int}, "key": "id"}, "create of write_sql.. has no column 'id'"),
        ({"batch_size": True}, "batch_size of write_sql"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidDAG, match=why):
        p.write_sql("sqlite:///x.db", "orders", **options)


def test_other_databases_are_refused(pyr: Instance) -> None:
    error = str(why_not(pyr, [], p.write_sql("mysql://u:hunter2@h/x", "orders")))
    assert "write_sql() writes to PostgreSQL and SQLite" in error
    assert "hunter2" not in error


def test_an_error_does_not_have_the_password(
    shared_postgres: PostgresServer, pyr: Instance
) -> None:
    database = with_orders(Database(shared_postgres.new_schema()))
    url = database.url.replace("postgres@", "postgres:hunter2@")
    error = why_not(pyr, [{"id": "x"}], p.write_sql(url, "orders"))
    assert error.item == {"id": "x"}
    assert b"hunter2" not in pickle.dumps(error)
    assert b"hunter2" not in str(error).encode()


def test_the_first_item_that_breaks_a_rule_is_named(database: Database, pyr: Instance) -> None:
    database.run("CREATE TABLE small (id INTEGER PRIMARY KEY, n INTEGER CHECK (n < 50))")
    items = [{"id": id, "n": id % 60} for id in range(200)]
    error = why_not(pyr, items, p.write_sql(database.url, "small", key="id", batch_size=30))
    assert error.item == {"id": 50, "n": 50}
    assert database.rows("SELECT * FROM small") == []


def test_a_connection_that_is_lost_is_an_error_and_leaves_nothing(
    shared_postgres: PostgresServer, pyr: Instance
) -> None:
    database = with_orders(Database(shared_postgres.new_schema()))
    ends_all = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    )

    def break_connections(order: Any) -> Any:
        if order["id"] == 500:
            database.rows(f"{ends_all} AND backend_type = 'client backend'")
        return order

    dag = DAG()
    read = dag.vertex("read", p.read_items(orders(range(1000))))
    breaks = dag.vertex("breaks", p.map(break_connections))
    dag.edge(between(read, breaks))
    sink = p.write_sql(database.url, "orders", batch_size=10)
    dag.edge(between(breaks, dag.vertex("orders", sink)))
    with pytest.raises(JobFailed, match="vertex 'orders' cannot write to table 'orders'"):
        pyr.new_light_job(dag).execute().result(timeout=60)
    assert (database.rows("SELECT * FROM orders"), database.tables()) == ([], ["orders"])
