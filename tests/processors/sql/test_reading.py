"""read_sql in light jobs."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, Instance, InvalidDAG, JobFailed, Pipeline, between
from pyrite import processors as p
from pyrite.processors.sql import ReadSql
from pyrite.processors.sql.ranges import KeyRange
from tests.databases import Database
from tests.postgres import PostgresServer


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
    rows = read(pyr, p.read_sql(database.url, "orders"))
    assert rows == [{"id": 1, "item": "tea"}, {"id": 2, "item": None}]
    assert {type(name) for row in rows for name in row} == {str}


def test_a_query_is_read_with_its_parameters(database: Database, pyr: Instance) -> None:
    orders(database, "(1, 'tea')", "(2, 'rum')", "(3, 'rum')")
    query = "SELECT id AS number FROM orders WHERE item = :item ORDER BY id;"
    found = read(pyr, p.read_sql(database.url, query, parameters={"item": "rum"}))
    assert found == [{"number": 2}, {"number": 3}]


@pytest.mark.parametrize(
    ("what", "parallelism"), [("orders", 7), ("select * from orders", 3), ("orders", 1)]
)
def test_readers_share_the_rows_by_a_key(
    database: Database, pyr: Instance, what: str, parallelism: int
) -> None:
    ids = [*range(-50, 50), *([7] * 40), 1_000_000, -2_000_000]
    orders(database, *(f"({id}, 'x')" for id in ids), "(NULL, 'none')", "(NULL, 'none')")
    found = read(pyr, p.read_sql(database.url, what, key="id", batch_size=10), parallelism)
    assert sorted(row["id"] for row in found if row["item"] == "x") == sorted(ids)
    assert [row["id"] for row in found if row["item"] == "none"] == [None, None]


def why_not(pyr: Instance, source: Any, parallelism: int = 1) -> JobFailed:
    with pytest.raises(JobFailed) as raised:
        read(pyr, source, parallelism)
    assert raised.value.vertex == "orders"
    return raised.value


@pytest.mark.parametrize("rows", [[], ["(1, 'x')"], ["(NULL, 'x')"]])
def test_few_rows_are_read_by_many_readers(
    database: Database, pyr: Instance, rows: list[str]
) -> None:
    orders(database, *rows)
    assert len(read(pyr, p.read_sql(database.url, "orders", key="id"), 5)) == len(rows)


@pytest.mark.parametrize(
    ("type", "values", "what"),
    [
        ("VARCHAR(9)", ["a", "B", "ä", "", "z''z", "a%b"], "keyed"),
        ("VARCHAR(9)", ["a", "B", "ä", "", "z''z", "a%b"], "SELECT k FROM keyed"),
        ("DATE", ["2024-01-31", "1999-12-31", "2030-05-05"], "keyed"),
        ("DATE", ["2024-01-31", "1999-12-31", "2030-05-05"], "SELECT k FROM keyed"),
        ("NUMERIC(20, 3)", ["1.5", "-7.125", "99999.999"], "keyed"),
        ("TIMESTAMP", ["2024-01-31 10:00:00", "1999-12-31 23:59:59.5"], "keyed"),
    ],
)
def test_keys_need_not_be_numbers(
    database: Database, pyr: Instance, type: str, values: list[str], what: str
) -> None:
    rows = ", ".join(f"('{value}')" for value in values * 5)
    database.run(f"CREATE TABLE keyed (k {type})", f"INSERT INTO keyed VALUES {rows}")
    found = read(pyr, p.read_sql(database.url, what, key="k"), 3)
    expected = read(pyr, p.read_sql(database.url, what))
    assert len(found) == len(values) * 5
    assert sorted(map(str, found)) == sorted(map(str, expected))


@pytest.mark.parametrize(
    "query",
    [
        "select * from orders -- all",
        "select * from orders; -- all\n",
        "select * from orders ; /* all; */ ;",
        "--all\nselect * from orders",
        "/*+ all */ select * from orders",
        "select * from orders where item <> ';--' -- :all",
        "select * from orders -- it's\nwhere item <> '\\\\' --",
    ],
)
def test_a_query_may_have_comments(database: Database, pyr: Instance, query: str) -> None:
    orders(database, *(f"({id}, 'x')" for id in range(9)))
    for options in ({}, {"key": "id"}, {"columns": ["id"]}):
        found = read(pyr, p.read_sql(database.url, query, **options), 2)
        assert sorted(row["id"] for row in found) == list(range(9))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("item in :two and not (item IN (:none))", [1, 2]),
        ("(item in:two) and id not in :none", [1, 2]),
        ("item not in ( :two )", [3]),
        ("item in :none or id in :none", []),
    ],
)
def test_a_list_of_values_may_follow_in(
    database: Database, pyr: Instance, query: str, found: list[int]
) -> None:
    orders(database, "(1, 'tea')", "(2, 'rum')", "(3, 'gin')")
    used = {"two": {"tea", "rum"}, "none": ()}
    query = f"select id from orders where {query}"
    rows = read(pyr, p.read_sql(database.url, query, parameters=used, key="id"), 2)
    assert sorted(row["id"] for row in rows) == found


def test_a_list_is_an_array_elsewhere(shared_postgres: PostgresServer, pyr: Instance) -> None:
    database = orders(Database(shared_postgres.new_schema()), "(1, 'tea')", "(2, 'rum')")
    query = "select id from orders where id = any(:ids)"
    assert read(pyr, p.read_sql(database.url, query, parameters={"ids": [2, 3]})) == [{"id": 2}]


def test_a_parameter_without_a_value_is_named() -> None:
    with pytest.raises(
        InvalidDAG, match=r":least without a value; .* parameters=\{'least': \.\.\."
    ):
        p.read_sql("sqlite:///x.db", "select * from orders where n > :least and m = :m")


def test_a_value_that_cannot_be_sent_is_told_without_the_statement(
    database: Database, pyr: Instance
) -> None:
    orders(database)
    query = "select * from orders where item = :item"
    error = str(why_not(pyr, p.read_sql(database.url, query, parameters={"item": object()})))
    assert "vertex 'orders' cannot read from" in error
    assert "select" not in error
    assert "sqlalche.me" not in error


SQLITE_KEYS: dict[str, tuple[str, list[Any]]] = {
    "texts with and without a T": (
        "DATETIME",
        [f"2024-01-01{between}{hour:02}:00:00" for between in " T" for hour in range(24)],
    ),
    "numbers in a datetime": ("DATETIME", [1_700_000_000 + n for n in range(20)]),
    "large numbers": ("NUMERIC", [2**53 + 1 + 2 * n for n in range(20)]),
    "numbers of all kinds": ("DECIMAL", [*range(10), *(n + 0.5 for n in range(10))]),
    "values of all kinds": ("BLOB", [*range(9), "a", "b", "1", "2", b"x", b"y", 0.5, 1e300]),
    "texts without regard to case": ("TEXT COLLATE NOCASE", ["a", "B", "b", "A", "c", "C"] * 3),
}


@pytest.mark.parametrize("what", ["keyed", "SELECT * FROM keyed"])
@pytest.mark.parametrize(("type", "keys"), SQLITE_KEYS.values(), ids=SQLITE_KEYS.keys())
def test_any_value_that_sqlite_keeps_divides_the_rows(
    tmp_path: Path, pyr: Instance, type: str, keys: list[Any], what: str
) -> None:
    with sqlite3.connect(tmp_path / "x.db") as raw:
        raw.execute(f"CREATE TABLE keyed (k {type}, n INT)")
        raw.executemany("INSERT INTO keyed VALUES (?, ?)", [(k, n) for n, k in enumerate(keys)])
    raw.close()
    source = p.read_sql(f"sqlite:///{tmp_path}/x.db", what, key="k", columns=["n"])
    assert sorted(row["n"] for row in read(pyr, source, 4)) == list(range(len(keys)))


def test_the_parts_are_about_equal_even_if_keys_are_skewed(
    database: Database, pyr: Instance
) -> None:
    orders(database, *(f"({2**n % 1_000_003}, 'x')" for n in range(300)))
    step = p.read_sql(database.url, "orders", key="id").step
    assert isinstance(step, ReadSql)
    sizes = [
        sum(len(rows) for rows in step.read([each], "orders"))
        for each in step.found("orders", 3).ranges or ()
    ]
    assert (sizes[3], sum(sizes)) == (0, 300)
    assert all(90 <= size <= 110 for size in sizes[:3])


def test_only_the_named_columns_are_read(database: Database, pyr: Instance) -> None:
    orders(database, "(1, 'tea')")
    for what in ("orders", "SELECT * FROM orders"):
        found = read(pyr, p.read_sql(database.url, what, columns=["item"], key="id"))
        assert found == [{"item": "tea"}]


def test_a_missing_table_is_named_with_one_that_is_alike(database: Database, pyr: Instance) -> None:
    orders(database)
    error = str(why_not(pyr, p.read_sql(database.url, "order")))
    assert "uses the table 'order', which the database does not have" in error
    assert "did you mean 'orders'?" in error


def test_a_missing_column_is_named(database: Database, pyr: Instance) -> None:
    orders(database)
    error = str(why_not(pyr, p.read_sql(database.url, "orders", key="nr")))
    assert "column 'nr' of table 'orders', which has no such column; it has: id, item" in error


def test_what_the_database_says_about_a_query_is_told(database: Database, pyr: Instance) -> None:
    orders(database)
    error = str(why_not(pyr, p.read_sql(database.url, "SELECT price FROM orders")))
    assert "vertex 'orders' cannot read from" in error
    assert "price" in error
    assert "; look at the names of the table and its columns" in error
    assert "sqlalche.me" not in error


def test_two_columns_of_the_same_name_are_refused(database: Database, pyr: Instance) -> None:
    orders(database, "(1, 'tea')")
    error = str(why_not(pyr, p.read_sql(database.url, "SELECT id, item AS id FROM orders")))
    assert "two columns named 'id'; give one of them another name: AS other_id" in error


def test_a_server_that_does_not_run_is_an_error_without_the_password(pyr: Instance) -> None:
    error = why_not(pyr, p.read_sql("postgresql://app:hunter2@127.0.0.1:1/x", "orders"))
    assert "postgresql://app:***@127.0.0.1:1/x" in str(error)
    assert "whether the server runs" in str(error)
    assert "hunter2" not in str(error)


def test_a_missing_file_is_not_made(pyr: Instance, tmp_path: Path) -> None:
    error = str(why_not(pyr, p.read_sql(f"sqlite:///{tmp_path}/none.db", "orders")))
    assert f"there is no file '{tmp_path}/none.db'" in error
    assert list(tmp_path.iterdir()) == []


def test_the_password_is_not_shown_and_may_come_from_the_environment(
    database: Database, pyr: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders(database, "(1, 'tea')")
    monkeypatch.setenv("SHOP_URL", database.url)
    source = p.read_sql("${SHOP_URL}", "orders")
    assert database.url.encode() not in pickle.dumps(source)
    assert read(pyr, source) == [{"id": 1, "item": "tea"}]
    hidden = p.read_sql("postgresql://app:hunter2@h/x?sslpassword=hunter3", "orders")
    assert "hunter" not in repr(hidden)
    assert "${PW}" in repr(p.read_sql("postgresql://app:${PW}@h/x", "orders"))


def test_a_variable_that_is_not_set_is_named(pyr: Instance) -> None:
    error = str(why_not(pyr, p.read_sql("postgresql://app:${NO_SUCH}@h/x", "orders")))
    assert "needs the variable NO_SUCH, which is not set" in error


@pytest.mark.parametrize(
    ("arguments", "options", "why"),
    [
        (("no url", "orders"), {}, "cannot be read as one"),
        (("sqlite://", "orders"), {}, "in the memory of one connection"),
        (("sqlite:///x.db", ""), {}, "needs a SELECT, or the name of a table"),
        (("sqlite:///x.db", "orders"), {"key": 7}, "must be the name of a column"),
        (("sqlite:///x.db", "orders"), {"parameters": {"a": 1}}, "can have no parameters"),
        (("sqlite:///x.db", "orders"), {"batch_size": 0}, "batch_size of read_sql"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: tuple[str, str], options: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidDAG, match=why):
        p.read_sql(*arguments, **options)


def test_without_sqlalchemy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InvalidDAG, match=r"pip install 'pyrite\[sql\]'"):
        p.read_sql("sqlite:///x.db", "orders")


def test_rows_are_read_as_they_are_needed(database: Database, pyr: Instance) -> None:
    database.run("CREATE TABLE many (n INTEGER)")
    some = ", ".join(f"({n})" for n in range(1000))
    for _ in range(5):
        database.run(f"INSERT INTO many VALUES {some}")
    step = p.read_sql(database.url, "many", batch_size=10).step
    assert isinstance(step, ReadSql)
    blocks = step.read([KeyRange()], "many")
    assert len(next(blocks)) == 10
    blocks.close()
    database.run("DROP TABLE many")  # waits as long as somebody reads


def test_a_reader_that_is_stopped_closes_its_connection(database: Database, pyr: Instance) -> None:
    orders(database, *(f"({n}, 'x')" for n in range(5000)))
    pipe = Pipeline()
    few = pipe.read_from(p.read_sql(database.url, "orders", batch_size=10)).limit(3).collect()
    assert len(few) == 3
    database.run("DROP TABLE orders")


def test_rows_come_in_the_order_of_the_key(database: Database, pyr: Instance) -> None:
    orders(database, *(f"({n * 7 % 100}, 'x')" for n in range(100)))
    for what in ("orders", "SELECT * FROM orders"):
        found = read(pyr, p.read_sql(database.url, what, key="id"))
        assert [row["id"] for row in found] == list(range(100))


def test_a_preview_looks_at_some_rows(database: Database) -> None:
    orders(database, *(f"({n}, 'x')" for n in range(1000)))
    pipe = Pipeline()
    rows = pipe.read_from(p.read_sql(database.url, "orders", key="id"), name="orders")
    rows.write_to(p.write_sql(database.url, "nowhere"))
    assert "'id': 0" in str(pipe.preview(3))


@pytest.mark.parametrize(
    "value",
    [
        "gen_random_uuid()",
        "(ARRAY['sad', 'happy']::mood[])[1 + n % 2]",
        "random()::real",
        "now() + n * interval '1 hour'",
        "n::text::bytea",
        "n % 2 = 0",
        "CASE n % 3 WHEN 0 THEN 'NaN'::float ELSE n END",
        "CASE WHEN n < 50 THEN '1 year' ELSE '360 days'::interval + n * interval '1 minute' END",
        "CASE n WHEN 50 THEN 'infinity' ELSE now() END",
        "ARRAY[n % 7, n]",
        "jsonb_build_object('a', n)",
        "(n::text)::char(5)",
        "n::numeric / 7",
    ],
)
@pytest.mark.parametrize("what", ["keyed", "SELECT * FROM keyed"])
def test_any_key_that_postgresql_can_order_divides_the_rows(
    shared_postgres: PostgresServer, value: str, what: str
) -> None:
    database = Database(shared_postgres.new_schema())
    database.run(
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        f"CREATE TABLE keyed AS SELECT n, {value} AS k FROM generate_series(1, 100) AS n",
    )
    step = p.read_sql(database.url, what, key="k", columns=["n"]).step
    assert isinstance(step, ReadSql)
    ranges = step.found("keyed", 3).ranges or ()
    assert len(ranges) > 2
    found = [row["n"] for rows in step.read(ranges, "keyed") for row in rows]
    assert sorted(found) == list(range(1, 101))
