"""Each test of databases runs with SQLite and with PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.databases import Database


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "sqlite":
        return Database(f"sqlite:///{tmp_path}/shop.db")
    return Database(request.getfixturevalue("shared_postgres").new_schema())
