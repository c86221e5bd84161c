"""The statement that moves rows from a staging table to their target, and which row it fails at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, IntegrityError

from pyrite.processors.sql.staging import ROW, TAG

MOST_SEARCHED = 100_000
"""Among how many rows the one is looked for that the database refuses."""

Chosen = Sequence[ColumnElement[bool]]


@dataclass(frozen=True, slots=True)
class Moving:
    rows: Table
    target: Table
    names: Sequence[str]
    key: Sequence[str]
    """The columns by which rows are updated; none if all rows are added."""

    def insert(self, connection: Connection, chosen: Chosen, most: int | None = None) -> Any:
        """Moves the chosen rows, or the first of them."""
        kind: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
        insert = kind.insert(self.target).from_select(
            list(self.names), self._moved(chosen).limit(most)
        )
        if not self.key:
            return insert
        changed = {name: insert.excluded[name] for name in self.names if name not in self.key}
        if not changed:
            return insert.on_conflict_do_nothing(index_elements=list(self.key))
        return insert.on_conflict_do_update(index_elements=list(self.key), set_=changed)

    def refused(self, connection: Connection, chosen: Chosen) -> dict[str, Any] | None:
        """The first row that the database refuses, after those before it; None if there are too
        many rows to look for it."""
        moved = self._moved(chosen)
        count = select(func.count()).select_from(moved.subquery("pyrite_moved"))
        most = connection.execute(count).scalar_one()
        if most > MOST_SEARCHED:
            return None
        fine = 0
        while most - fine > 1:
            middle = (fine + most) // 2
            if self._is_refused(connection, chosen, middle):
                most = middle
            else:
                fine = middle
        row = connection.execute(moved.offset(most - 1).limit(1)).first()
        return None if row is None else dict(row._mapping)

    def _is_refused(self, connection: Connection, chosen: Chosen, most: int) -> bool:
        only_tried = connection.begin_nested()
        try:
            connection.execute(self.insert(connection, chosen, most))
        except (IntegrityError, DataError):
            return True
        finally:
            only_tried.rollback()
        return False

    def _moved(self, chosen: Chosen) -> Select[Any]:
        """Rows in the order in which they were written. Of those with the same key only the last:
        PostgreSQL refuses to change a row twice in one statement."""
        rows = self.rows
        columns = [rows.c[name] for name in self.names]
        if not self.key:
            return select(*columns).where(*chosen).order_by(rows.c[TAG], rows.c[ROW])
        last = func.row_number().over(
            partition_by=[rows.c[name] for name in self.key],
            order_by=(rows.c[TAG].desc(), rows.c[ROW].desc()),
        )
        ranked = select(*columns, rows.c[TAG], rows.c[ROW], last.label("pyrite_rank"))
        of = ranked.where(*chosen).subquery("pyrite_ranked").c
        latest = select(*(of[name] for name in self.names)).where(of.pyrite_rank == 1)
        return latest.order_by(of[TAG], of[ROW])
