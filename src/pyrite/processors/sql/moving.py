"""The statements that move rows from a staging table to their target, and which row they fail at.

A statement moves rows that have the same fields. Where rows are updated, the items with the same
key are first made one row: each field has the value of the last item that has this field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, case, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, IntegrityError

from pyrite.processors.sql.staging import FIELDS, ROW, TAG, columns_of

MOST_SEARCHED = 100_000
"""Among how many rows the one is looked for that the database refuses."""


@dataclass(frozen=True, slots=True)
class Moving:
    """One statement."""

    target: Table
    names: Sequence[str]
    """The columns that it changes."""
    key: Sequence[str]
    """The columns by which rows are updated; none if all rows are added."""
    moved: Select[Any]
    """The rows, in the order in which they are moved."""

    def insert(self, connection: Connection, most: int | None = None) -> Any:
        """Moves the rows, or the first of them."""
        kind: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
        insert = kind.insert(self.target).from_select(list(self.names), self.moved.limit(most))
        if not self.key:
            return insert
        changed = {name: insert.excluded[name] for name in self.names if name not in self.key}
        if not changed:
            return insert.on_conflict_do_nothing(index_elements=list(self.key))
        return insert.on_conflict_do_update(index_elements=list(self.key), set_=changed)

    def refused(self, connection: Connection) -> dict[str, Any] | None:
        """The first row that the database refuses, after those before it; None if there are too
        many rows to look for it."""
        count = select(func.count()).select_from(self.moved.subquery("pyrite_moved"))
        most = connection.execute(count).scalar_one()
        if most > MOST_SEARCHED:
            return None
        fine = 0
        while most - fine > 1:
            middle = (fine + most) // 2
            if self._is_refused(connection, middle):
                most = middle
            else:
                fine = middle
        row = connection.execute(self.moved.offset(most - 1).limit(1)).first()
        return None if row is None else dict(row._mapping)

    def _is_refused(self, connection: Connection, most: int) -> bool:
        only_tried = connection.begin_nested()
        try:
            connection.execute(self.insert(connection, most))
        except (IntegrityError, DataError):
            return True
        finally:
            only_tried.rollback()
        return False


def adding(rows: Table, target: Table, shapes: Sequence[str], tags: Sequence[str]) -> list[Moving]:
    """Adds all rows of these attempts. A shape is the fields of an item, as `fields_of` writes
    them."""
    return [
        Moving(
            target,
            columns_of(shape),
            (),
            select(*(rows.c[name] for name in columns_of(shape)))
            .where(rows.c[FIELDS] == shape, rows.c[TAG].in_(tags))
            .order_by(rows.c[TAG], rows.c[ROW]),
        )
        for shape in shapes
    ]


def updating(
    connection: Connection,
    rows: Table,
    target: Table,
    shapes: Sequence[str],
    tags: Sequence[str],
    key: Sequence[str],
) -> Iterator[Moving]:
    """Updates the rows of the target by their key, or adds them. Each key is moved once: PostgreSQL
    refuses to change a row twice in one statement."""
    having = {
        column.name: [shape for shape in shapes if column.name in columns_of(shape)]
        for column in target.columns
    }
    always = [name for name, those in having.items() if those and len(those) == len(shapes)]
    sometimes = [name for name, those in having.items() if those and len(those) < len(shapes)]
    partition: Any = [rows.c[name] for name in key]
    latest = (rows.c[TAG].desc(), rows.c[ROW].desc())

    def has(name: str) -> ColumnElement[int]:
        return case((rows.c[FIELDS].in_(having[name]), 1), else_=0)

    def last(name: str) -> ColumnElement[Any]:
        if name in always:
            return rows.c[name]
        found: Any = func.first_value(rows.c[name], type_=rows.c[name].type)
        over: ColumnElement[Any] = found.over(
            partition_by=partition, order_by=(has(name).desc(), *latest)
        )
        return over

    names = [*always, *sometimes]
    # Names of columns can be as long as the database allows; so they have no prefix here.
    values = {name: f"pyrite_value_{number}" for number, name in enumerate(names)}
    merged = select(
        *(last(name).label(values[name]) for name in names),
        *(
            func.max(has(name)).over(partition_by=partition).label(f"pyrite_has_{number}")
            for number, name in enumerate(sometimes)
        ),
        rows.c[TAG],
        rows.c[ROW],
        func.row_number().over(partition_by=partition, order_by=latest).label("pyrite_rank"),
    )
    of = merged.where(rows.c[TAG].in_(tags)).subquery("pyrite_merged").c
    flags = [of[f"pyrite_has_{number}"] for number in range(len(sometimes))]
    kinds: Any = [()]  # all rows have the same fields
    if flags:
        kinds = connection.execute(select(*flags).distinct().order_by(*flags)).all()
    order = [of[TAG], of[ROW]]
    if connection.dialect.name == "postgresql":
        # Two jobs that update the same rows must lock them in the same order.
        order = [of[values[name]] for name in sorted(key)]
    for kind in kinds:
        there = [*always, *(name for name, has_it in zip(sometimes, kind) if has_it)]
        moved = select(*(of[values[name]].label(name) for name in there)).where(
            of.pyrite_rank == 1, *(flag == has_it for flag, has_it in zip(flags, kind))
        )
        yield Moving(target, there, key, moved.order_by(*order))
