"""Values are the same after they were written and read; those that would be changed are refused."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from pyrite import Instance, InvalidDAG, JobFailed, Pipeline
from pyrite import processors as p
from tests.databases import Database

EAST = timezone(timedelta(hours=5, minutes=30))


def written_and_read(database: Database, type: Any, value: Any) -> Any:
    pipe = Pipeline()
    sink = p.write_sql(database.url, "kept", create={"id": int, "v": type | None}, key="id")
    pipe.read_from([{"id": 1, "v": value}]).write_to(sink)
    pipe.run()
    ((row),) = Pipeline().read_from(p.read_sql(database.url, "kept")).collect()
    return row["v"]


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (int, -(2**62)),
        (float, 0.1),
        (bool, True),
        (str, "naïve 'quotes' \n %s :name"),
        (bytes, b"\0\xff"),
        (date, date(1969, 7, 20)),
        (time, time(23, 59, 1)),
        (datetime, datetime(2024, 2, 29, 12, 0, 0, 5, tzinfo=UTC)),
        (datetime, datetime(2024, 2, 29, 12, tzinfo=EAST)),
        (Decimal, Decimal("12345678901.25")),
        (dict, {"a": [1, None, "x"], "b": {"c": 1.5}}),
        (list, [1, "two", None]),
        (str, None),
        (dict, None),
        (datetime, None),
    ],
)
def test_values_are_kept(database: Database, type: Any, value: Any) -> None:
    found = written_and_read(database, type, value)
    assert found == value
    assert found.__class__ is value.__class__


def test_a_datetime_without_a_zone_is_kept_where_the_type_has_none(database: Database) -> None:
    database.run("CREATE TABLE kept (id INTEGER PRIMARY KEY, v TIMESTAMP)")
    value = datetime(2024, 2, 29, 12, 0, 0, 5)
    assert written_and_read(database, datetime, value) == value


def test_none_in_json_is_null(database: Database) -> None:
    written_and_read(database, dict, None)
    assert database.rows("SELECT count(*) FROM kept WHERE v IS NULL") == [(1,)]


@pytest.mark.parametrize(
    ("type", "value", "why"),
    [
        (int, 1.5, "it takes int, not float"),
        (int, True, "it takes int, not bool"),
        (int, "7", "it takes int, not str"),
        (str, 7, "it takes str, not int"),
        (date, datetime(2024, 1, 1), "it takes date, not datetime"),
        (bool, 1, "it takes bool, not int"),
        (datetime, date(2024, 1, 1), "it takes datetime, not date"),
        (int, 2**70, ""),
        (dict, {"a": object()}, "JSON"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    database: Database, type: Any, value: Any, why: str
) -> None:
    with pytest.raises(JobFailed) as raised:
        written_and_read(database, type, value)
    assert "cannot write item {'id': 1, 'v': " in str(raised.value)
    assert why in str(raised.value)
    assert raised.value.item["id"] == 1


def test_zones_are_neither_dropped_nor_guessed(shared_postgres: Any) -> None:
    database = Database(shared_postgres.new_schema())
    with pytest.raises(JobFailed, match="add one: tzinfo="):
        written_and_read(database, datetime, datetime(2024, 1, 1))
    database.run("CREATE TABLE kept (id INTEGER PRIMARY KEY, v TIMESTAMP)")
    with pytest.raises(JobFailed, match="its type has no time zone, but the value has one"):
        written_and_read(database, datetime, datetime(2024, 1, 1, tzinfo=UTC))


def test_sqlite_refuses_decimals_that_it_would_change(tmp_path: Any) -> None:
    database = Database(f"sqlite:///{tmp_path}/x.db")
    with pytest.raises(JobFailed, match="SQLite keeps decimals as floating-point numbers"):
        written_and_read(database, Decimal, Decimal("0.12345678901234567890"))


def test_types_that_no_column_has_are_refused() -> None:
    with pytest.raises(InvalidDAG, match="column 'v' the type"):
        p.write_sql("sqlite:///x.db", "kept", create={"v": object})


def test_columns_of_postgresql_that_sqlite_lacks(shared_postgres: Any, pyr: Instance) -> None:
    database = Database(shared_postgres.new_schema())
    database.run(
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE TABLE kept (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, m mood, "
        "tags TEXT[], doc JSONB, u UUID, at TIMESTAMPTZ DEFAULT now(), "
        "twice INT GENERATED ALWAYS AS (7) STORED)",
    )
    pipe = Pipeline()
    item = {"m": "happy", "tags": ["a", "b"], "doc": {"x": [1]}, "u": uuid.UUID(int=7)}
    pipe.read_from([item]).write_to(p.write_sql(database.url, "kept"))
    pipe.run()
    (row,) = Pipeline().read_from(p.read_sql(database.url, "kept", key="m")).collect()
    assert {name: row[name] for name in item} == item
    assert (row["id"], row["twice"]) == (1, 7)
    assert row["at"].tzinfo is not None
