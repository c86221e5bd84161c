"""Values are the same after they were written and read; those that would be changed are refused."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import pytest

from pyrite import InvalidDAG, JobFailed, Pipeline
from pyrite import processors as p
from tests.databases import Database
from tests.postgres import PostgresServer

EAST = timezone(timedelta(hours=5, minutes=30))


VALUES: list[tuple[Any, Any]] = [
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
]


@pytest.fixture
def sqlite(tmp_path: Path) -> Database:
    return Database(f"sqlite:///{tmp_path}/x.db")


@pytest.fixture
def postgresql(shared_postgres: PostgresServer) -> Database:
    return Database(shared_postgres.new_schema())


def kept(database: Database, types: dict[str, Any], *items: dict[str, Any]) -> list[Any]:
    """What is read after these were written to a table of these types."""
    pipe = Pipeline()
    pipe.read_from(items).write_to(p.write_sql(database.url, "kept", create=types, mode="replace"))
    pipe.run()
    return Pipeline().read_from(p.read_sql(database.url, "kept")).collect()


def test_values_are_kept(database: Database) -> None:
    types = {f"c{n}": type | None for n, (type, _) in enumerate(VALUES)}
    values = {f"c{n}": value for n, (_, value) in enumerate(VALUES)}
    nothing = dict.fromkeys(types)
    found, none = kept(database, types, values, nothing)
    assert (found, none) == (values, nothing)
    assert [v.__class__ for v in found.values()] == [v.__class__ for v in values.values()]


def test_a_datetime_without_a_zone_is_kept_where_the_type_has_none(database: Database) -> None:
    database.run("CREATE TABLE kept (v TIMESTAMP)")
    item = {"v": datetime(2024, 2, 29, 12, 0, 0, 5)}
    assert kept(database, {"v": datetime}, item) == [item]


def test_none_in_json_is_null(database: Database) -> None:
    kept(database, {"v": dict | None}, {"v": None})
    assert database.rows("SELECT count(*) FROM kept WHERE v IS NULL") == [(1,)]


def refused(database: Database, type: Any, value: Any) -> str:
    with pytest.raises(JobFailed, match=r"cannot write item \{'v': ") as raised:
        kept(database, {"v": type}, {"v": value})
    assert "v" in raised.value.item
    return str(raised.value)


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
        (Decimal, Decimal("0.12345678901234567890"), "SQLite keeps decimals as floating-point"),
        (int, 2**70, "too large"),
        (float, 2**60 + 1, "it keeps floats, and so 1.15"),
        (float, Decimal("0.12345678901234567890"), "it keeps floats, and so 0.1234"),
        (float, 10**400, "no float is so large"),
        (float | None, float("nan"), "SQLite would keep NaN as NULL"),
        (Decimal | None, float("nan"), "SQLite would keep NaN as NULL"),
        (time, time(1, 2, tzinfo=UTC), "its type has no time zone"),
        (dict, {"a": object()}, "JSON"),
    ],
)
def test_values_that_would_be_changed_are_refused(
    sqlite: Database, type: Any, value: Any, why: str
) -> None:
    assert why in refused(sqlite, type, value)


def test_a_float_column_keeps_other_numbers_that_are_floats(database: Database) -> None:
    items = [{"v": value} for value in (2**60, Decimal("0.1"), 7, float("inf"))]
    assert kept(database, {"v": float}, *items) == [{"v": v} for v in (2.0**60, 0.1, 7.0, inf)]


def test_postgresql_keeps_nan(postgresql: Database) -> None:
    (row,) = kept(postgresql, {"v": float}, {"v": nan})
    assert isnan(row["v"])


def test_a_table_with_uuids_is_written_again(database: Database) -> None:
    for number in range(2):
        pipe = Pipeline()
        types = {"u": uuid.UUID, "n": int}
        sink = p.write_sql(database.url, "kept", key="u", create=types)
        pipe.read_from([{"u": uuid.UUID(int=5), "n": number}]).write_to(sink)
        pipe.run()
    (row,) = Pipeline().read_from(p.read_sql(database.url, "kept")).collect()
    assert (uuid.UUID(str(row["u"])), row["n"]) == (uuid.UUID(int=5), 1)


def test_the_item_that_postgresql_refuses_is_found_among_others(postgresql: Database) -> None:
    postgresql.run("CREATE TABLE kept (v VARCHAR(3), n SMALLINT)")
    items = [{"v": "abc", "n": n} for n in range(100)]
    items[40] = {"v": "abcd", "n": 40}
    with pytest.raises(JobFailed, match="value too long for type character varying") as raised:
        kept(postgresql, {"v": str, "n": int}, *items)
    assert raised.value.item == items[40]


def test_zones_are_neither_dropped_nor_guessed(postgresql: Database) -> None:
    assert "add one: tzinfo=" in refused(postgresql, datetime, datetime(2024, 1, 1))
    postgresql.run("CREATE TABLE kept (v TIMESTAMP)")
    with_zone = datetime(2024, 1, 1, tzinfo=UTC)
    assert "its type has no time zone" in refused(postgresql, datetime, with_zone)


def test_types_that_no_column_has_are_refused() -> None:
    with pytest.raises(InvalidDAG, match="column 'v' the type"):
        p.write_sql("sqlite:///x.db", "kept", create={"v": object})


def test_columns_of_postgresql_that_sqlite_lacks(postgresql: Database) -> None:
    postgresql.run(
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE TABLE kept (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, m mood, "
        "tags TEXT[], doc JSONB, u UUID, at TIMESTAMPTZ DEFAULT now(), "
        "twice INT GENERATED ALWAYS AS (7) STORED)",
    )
    pipe = Pipeline()
    item = {"m": "happy", "tags": ["a", "b"], "doc": {"x": [1]}, "u": uuid.UUID(int=7)}
    pipe.read_from([item]).write_to(p.write_sql(postgresql.url, "kept"))
    pipe.run()
    (row,) = Pipeline().read_from(p.read_sql(postgresql.url, "kept", key="m")).collect()
    assert {name: row[name] for name in item} == item
    assert (row["id"], row["twice"]) == (1, 7)
    assert row["at"].tzinfo is not None
