"""A database of its own for one test."""

from __future__ import annotations

from typing import Any

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.pool import NullPool


class Database:
    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = create_engine(
            url.replace("postgresql://", "postgresql+psycopg://"), poolclass=NullPool
        )
        self.is_sqlite = url.startswith("sqlite")

    def run(self, *statements: str) -> None:
        with self._engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def rows(self, query: str) -> list[Any]:
        with self._engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    def tables(self) -> list[str]:
        return sorted(inspect(self._engine).get_table_names())
