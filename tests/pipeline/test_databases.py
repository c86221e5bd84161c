"""Databases in pipelines: the same rows in every mode, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrite import Pipeline, agg
from pyrite import processors as p
from tests.databases import Database
from tests.pipeline.modes import Mode, mode

__all__ = ["mode"]


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


@pytest.fixture(params=["sqlite", "postgresql"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    shop = Database(
        f"sqlite:///{tmp_path}/shop.db"
        if request.param == "sqlite"
        else request.getfixturevalue("shared_postgres").new_schema()
    )
    rows = ", ".join(f"({n}, {n % 7}, {n % 10})" for n in range(1000))
    shop.run(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, total INTEGER)",
        f"INSERT INTO orders VALUES {rows}",
        "CREATE TABLE totals (customer INTEGER PRIMARY KEY, n INTEGER NOT NULL, total INTEGER)",
        "INSERT INTO totals VALUES (1, 0, 0), (100, 0, 0)",
    )
    return shop


def test_a_database_is_read_and_written_in_every_mode(mode: Mode, shop: Database) -> None:
    pipe = Pipeline()
    orders = pipe.read_from(p.read_sql(shop.url, "orders", key="id", batch_size=50))
    orders.write_to(
        p.write_sql(shop.url, "copies", create={"id": int, "customer": int, "total": int})
    )
    (
        orders.group_by(lambda row: row["customer"])
        .aggregate(agg.count(), agg.sum(lambda row: row["total"]))
        .map(lambda found: dict(zip(("customer", "n", "total"), found)))
        .write_to(p.write_sql(shop.url, "totals", key="customer"))
    )
    mode.listed(pipe)
    assert shop.rows("SELECT count(*), count(DISTINCT id), sum(total) FROM copies") == [
        (1000, 1000, 4500)
    ]
    assert shop.rows("SELECT count(*), sum(n), sum(total) FROM totals") == [(8, 1000, 4500)]
    assert set(shop.tables()) - {"pyrite_commits"} == {"orders", "copies", "totals"}
