"""Tables as people have them (rows as dicts, columns, pandas, polars, Arrow), read as columns of
plain Python values."""

from __future__ import annotations

import difflib
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from pyrite.errors import InvalidWorkload
from pyrite.functions import shorten


def as_columns(
    table: Any, *, what: str, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, list[Any]]:
    """The columns of a table by name, all of one length. A value that is missing, in whatever way,
    is None.

    Raises InvalidWorkload if a required column is missing or there is one that has no meaning here.

    >>> rows = [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]
    >>> as_columns(rows, what="schedule", required=("from", "to"))
    {'from': ['a', 'b'], 'to': ['b', 'c']}
    """
    columns = _columns(table, what)
    known = (*required, *optional)
    problems = [
        f"the {what} has no column '{name}'" + _has(columns)
        for name in required
        if name not in columns
    ]
    if problems and not columns and _is_empty(table):
        return {name: [] for name in required}
    for name in columns:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, 1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; it may have {', '.join(known)}"
            problems.append(f"the {what} has a column '{name}', which means nothing here{hint}")
    if problems:
        raise InvalidWorkload(problems)
    return columns


def job_id(value: Any) -> str:
    """A job's id as text; numbers are welcome. Raises ValueError with the end of a sentence if it
    is no id."""
    if isinstance(value, str):
        if not value:
            raise ValueError("is empty; an id is a text, as 'clean'")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"must be a text that can be written; {value!a} has a part of a character"
            ) from None
        return str(value)
    if isinstance(value, bool) or value is None:
        raise ValueError(f"must be a job's id, a text; got {value!r}")
    if (
        isinstance(value, float) and value.is_integer()
    ):  # pandas turns a column of ids with a gap into floats
        return str(int(value))
    if isinstance(value, int) or hasattr(value, "__index__"):
        return str(int(value))
    raise ValueError(f"must be a job's id, a text; got {shorten(value)}")


def is_missing(value: Any) -> bool:
    """None, NaN, pandas.NA, NaT: the ways in which a table says that there is nothing."""
    if value is None:
        return True
    if isinstance(value, float):
        return value != value
    return type(value).__name__ in ("NAType", "NaTType")


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Many objects are made here, and none of them in circles: to look for those again and again
    takes a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _has(columns: Mapping[str, Any]) -> str:
    return f"; it has {', '.join(map(str, columns))}" if columns else ""


def _is_empty(table: Any) -> bool:
    try:
        return len(table) == 0
    except TypeError:
        return False


def _columns(table: Any, what: str) -> dict[str, list[Any]]:
    if isinstance(table, Mapping):
        return _of_one_length({str(name): _values(values) for name, values in table.items()}, what)
    if hasattr(table, "to_pylist") and hasattr(table, "column_names"):  # Arrow
        return {
            str(name): _without_filling(table.column(name).to_pylist())
            for name in table.column_names
        }
    if hasattr(table, "get_columns") and hasattr(table, "collect_schema"):  # polars
        return {column.name: _without_filling(column.to_list()) for column in table.get_columns()}
    if hasattr(table, "iloc") and hasattr(table, "columns"):  # pandas
        return {str(name): _values(table[name]) for name in table.columns}
    if isinstance(table, (str, bytes)) or not isinstance(table, Iterable):
        raise InvalidWorkload(
            [
                f"the {what} must be a table: a list of dicts, a dict of columns, pandas, polars "
                f"or Arrow; got {shorten(table)}"
            ]
        )
    rows = list(table)
    if set(map(type, rows)) - {dict}:
        problems = [
            f"row {n} of the {what} must be a dict; got {shorten(row)}"
            for n, row in enumerate(rows)
            if not isinstance(row, Mapping)
        ]
        if problems:
            raise InvalidWorkload(problems)
    names = dict.fromkeys(chain.from_iterable(rows))
    return {name: [row.get(name) for row in rows] for name in names}


def _values(values: Any) -> list[Any]:
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    return [None if is_missing(value) else value for value in listed]


def _without_filling(values: list[Any]) -> list[Any]:
    """Arrow gives every row the keys that any row has, with None: so a key that is None was not
    given."""
    return [
        {k: v for k, v in value.items() if v is not None} if type(value) is dict else value
        for value in values
    ]


def _of_one_length(columns: dict[str, list[Any]], what: str) -> dict[str, list[Any]]:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidWorkload([f"the columns of the {what} differ in length: {lengths}"])
    return columns
