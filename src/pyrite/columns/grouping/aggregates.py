"""What a grouping computes: the columns of the key, and for each new column an aggregate of a
column. Pure description; pyarrow is not imported here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pyrite.errors import InvalidDAG
from pyrite.functions import did_you_mean, shorten

Rows = Literal["rows", "states"]

FUNCTIONS: Final = ("sum", "mean", "min", "max", "count", "count_distinct", "first")


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One column of the result: `function` of `column`, under the name `name`."""

    name: str
    column: str
    function: str


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A grouping. A complete one takes rows and gives rows. The first half of one gives states, and
    the second half takes them."""

    by: tuple[str, ...]
    aggregates: tuple[Aggregation, ...]
    takes: Rows = "rows"
    gives: Rows = "rows"


@dataclass(frozen=True, slots=True)
class Part:
    """A column of a state: all values of a column of one group, reduced by `op`. Aggregates share
    parts: the mean of a column is made of its sum and its count."""

    column: str
    op: str  # sum, count, min, max, first, or distinct

    @property
    def name(self) -> str:
        """The name of the column in batches of states."""
        return f"{self.column}:{self.op}"


_OPS: Final = {"mean": ("sum", "count"), "count_distinct": ("distinct",)}


def parts_of(aggregation: Aggregation) -> tuple[Part, ...]:
    """The parts that an aggregate is made of.

    >>> [part.name for part in parts_of(Aggregation("average", "price", "mean"))]
    ['price:sum', 'price:count']
    """
    ops = _OPS.get(aggregation.function, (aggregation.function,))
    return tuple(Part(aggregation.column, op) for op in ops)


def all_parts(aggregates: Sequence[Aggregation]) -> tuple[Part, ...]:
    """The parts of all aggregates, each once, in the order of their first use."""
    return tuple(dict.fromkeys(part for each in aggregates for part in parts_of(each)))


def group_spec(
    by: Sequence[str],
    aggregates: Mapping[str, tuple[str, str]],
    *,
    takes: Rows = "rows",
    gives: Rows = "rows",
    where: str,
) -> GroupSpec:
    """The grouping of `group_batches(by=..., aggregates=...)`. Raises InvalidDAG if one of the two
    arguments is wrong. `where` is in its sentences: the call and the user's line."""
    found = _checked(by, aggregates, where)
    return GroupSpec(tuple(by), found, takes, gives)


def _checked(
    by: Sequence[str], aggregates: Mapping[str, tuple[str, str]], where: str
) -> tuple[Aggregation, ...]:
    if isinstance(by, str) or not isinstance(by, Sequence):
        example = f"; write by=[{by!r}]" if isinstance(by, str) else ""
        raise InvalidDAG(
            f"by of {where} must be a list of column names; got {shorten(by)}{example}"
        )
    for column in by:
        if not isinstance(column, str):
            raise InvalidDAG(
                f"by of {where} must be a list of column names, as strings; it contains "
                f"{shorten(column)}"
            )
        if by.count(column) > 1:
            raise InvalidDAG(f"by of {where} names column {column!r} twice; name it once")
    if not isinstance(aggregates, Mapping):
        raise InvalidDAG(
            f"aggregates of {where} must be a dict such as {{'total': ('price', 'sum')}}; got "
            f"{shorten(aggregates)}"
        )
    found = tuple(_aggregation(name, value, where) for name, value in aggregates.items())
    if not by and not found:
        raise InvalidDAG(f"{where} has neither columns in by nor aggregates; give one of them")
    taken = {part.name for part in all_parts(found)}.union(each.name for each in found)
    for column in by:
        if column in taken:
            raise InvalidDAG(
                f"aggregates of {where} make a column {column!r}, which is also a column of by; "
                "rename one of the two"
            )
    return found


def _aggregation(name: Any, value: Any, where: str) -> Aggregation:
    if not isinstance(name, str) or not name:
        raise InvalidDAG(
            f"the keys of aggregates of {where} must be the names of the new columns, as non-empty "
            f"strings; got {shorten(name)}"
        )
    pair = isinstance(value, (tuple, list)) and len(value) == 2
    if not pair or not all(isinstance(each, str) for each in value):
        raise InvalidDAG(
            f"aggregate {name!r} of {where} must be a pair (column, function), such as "
            f"('price', 'sum'); got {shorten(value)}"
        )
    column, function = value
    if function not in FUNCTIONS:
        raise InvalidDAG(
            f"aggregate {name!r} of {where} has the unknown function {function!r}; the functions "
            f"are {', '.join(FUNCTIONS)}{did_you_mean(function, FUNCTIONS)}"
        )
    return Aggregation(name, column, function)
