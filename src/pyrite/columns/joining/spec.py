"""What a join of batches does: its keys, which rows it keeps, and the columns of its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from pyrite.columns.schemas import InvalidBatch, ambiguous_column
from pyrite.errors import InvalidDAG
from pyrite.functions import shorten

JoinHow: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]
HOWS: tuple[JoinHow, ...] = get_args(JoinHow)


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """Joins left rows with right rows whose keys are equal: the values of `left_on` and of
    `right_on`, column by column."""

    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    how: JoinHow = "inner"

    @property
    def keeps_left(self) -> bool:
        """Whether left rows without a match are in the result."""
        return self.how in ("left", "full")

    @property
    def keeps_right(self) -> bool:
        """Whether right rows without a match are in the result."""
        return self.how in ("right", "full")

    @property
    def only_filters(self) -> bool:
        """Whether the result has the columns of the left side only, and each left row once at
        most."""
        return self.how in ("semi", "anti")


def join_spec(
    left_on: Sequence[str], right_on: Sequence[str], how: str = "inner", *, where: str
) -> JoinSpec:
    """Checks what a user gives. `where` names the call for error messages."""
    keys = [_names(left_on, "left_on", where), _names(right_on, "right_on", where)]
    if len(keys[0]) != len(keys[1]):
        raise InvalidDAG(
            f"left_on and right_on of {where} must name equally many columns; got "
            f"{shorten(list(keys[0]))} and {shorten(list(keys[1]))}"
        )
    for known in HOWS:
        if how == known:
            return JoinSpec(keys[0], keys[1], known)
    raise InvalidDAG(f"how of {where} must be one of {', '.join(HOWS)}; got {shorten(how)}")


def _names(names: Sequence[str], option: str, where: str) -> tuple[str, ...]:
    example = "a list of names of columns, such as ['id']"
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidDAG(f"{option} of {where} must be {example}; got {shorten(names)}")
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidDAG(f"{option} of {where} must be {example}; got {shorten(list(names))}")
    if len(set(names)) < len(names):
        raise InvalidDAG(f"{option} of {where} names a column twice: {shorten(list(names))}")
    return tuple(names)


def right_names(spec: JoinSpec, left: Sequence[str], right: Sequence[str], where: str) -> list[str]:
    """The names, in the result, of the right side's columns that are not keys. A name that the left
    side has too gets `_right`.

    >>> right_names(JoinSpec(("id",), ("id",)), ["id", "name"], ["id", "name", "age"], "a join")
    ['name_right', 'age']
    """
    taken = set(left)
    payload = [name for name in right if name not in spec.right_on]
    if len(set(payload)) < len(payload):
        twice = next(name for name in payload if payload.count(name) > 1)
        raise ambiguous_column(twice, f"{where}, right side")
    names = [f"{name}_right" if name in taken else name for name in payload]
    for name, new in zip(payload, names):
        if new != name and (new in taken or new in payload):
            side = "left" if new in taken else "right"
            raise InvalidBatch(
                f"{where}: both sides have a column {name!r}, and the {side} side has a column "
                f"{new!r}, too, so the right side's {name!r} cannot become {new!r}; rename one of "
                "them before the join"
            )
    return names
