"""Reads tables of several kinds (list of dicts, dict of columns, pandas, polars, Arrow) as columns
of plain Python values."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from pyrite.errors import InvalidWorkload
from pyrite.functions import did_you_mean, shorten


def as_columns(
    table: Any, *, what: str, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, list[Any]]:
    """The columns of a table by name, all of the same length. Missing values (NaN, pandas.NA and so
    on) become None.

    Raises InvalidWorkload if a required column is missing or a column is unknown.

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
            hint = did_you_mean(str(name), known) or f"; known are {', '.join(known)}"
            problems.append(f"the {what} has an unknown column '{name}'{hint}")
    if problems:
        raise InvalidWorkload(problems)
    return columns


def job_id(value: Any) -> str:
    """The id of a job as a string. Integers are converted. Raises ValueError, with the end of a
    sentence, if the value is not an id."""
    if isinstance(value, str):
        if not value:
            raise ValueError("is empty; an id is a string such as 'clean'")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"must be valid Unicode; {value!a} contains half of a surrogate pair"
            ) from None
        return str(value)
    if isinstance(value, bool) or value is None:
        raise ValueError(f"must be the id of a job, a string; got {value!r}")
    # pandas turns a column of integers with missing values into floats.
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int) or hasattr(value, "__index__"):
        return str(int(value))
    raise ValueError(f"must be the id of a job, a string; got {shorten(value)}")


def is_missing(value: Any) -> bool:
    """Whether a value stands for a missing one: None, NaN, pandas.NA or NaT."""
    if value is None:
        return True
    if isinstance(value, float):
        return value != value
    return type(value).__name__ in ("NAType", "NaTType")


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Turns the garbage collector off: the code inside makes many objects without cycles, and the
    collector would take a third of the time."""
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
        problems = [
            f"the column '{name}' of the {what} must be a list; got {shorten(values)}"
            for name, values in table.items()
            if isinstance(values, (str, bytes)) or not isinstance(values, Iterable)
        ]
        if problems:
            raise InvalidWorkload(problems)
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
                f"the {what} must be a list of dicts, a dict of columns, or a pandas, polars or "
                f"Arrow table; got {shorten(table)}"
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
    """Removes the keys with value None from dicts. Arrow and polars give every dict of a column all
    keys of that column, with None where a dict did not have the key."""
    return [
        {k: v for k, v in value.items() if v is not None} if type(value) is dict else value
        for value in values
    ]


def _of_one_length(columns: dict[str, list[Any]], what: str) -> dict[str, list[Any]]:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidWorkload([f"the columns of the {what} have different lengths: {lengths}"])
    return columns
