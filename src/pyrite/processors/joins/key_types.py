"""Warns if the keys of the two sides of a join can hardly be equal, because of their types. No type
checker sees that."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from numbers import Number
from typing import Any

from pyrite.errors import PyriteWarning
from pyrite.functions import describe, shorten
from pyrite.processors.groups.aggregates import Nothing

logger = logging.getLogger("pyrite")


@dataclass(frozen=True, slots=True)
class JoinKeys:
    """The functions that take the keys of a join, and where the join is, for messages."""

    left: Callable[[Any], Any]
    right: Callable[[Any], Any]
    where: str = "a join"

    def look(self, left: Iterable[Any], right: Iterable[Any]) -> None:
        """Warns if the first keys of both sides cannot be equal, unless others can: the keys of a
        side may have several types."""
        one, rights = _first(left), iter(right)
        other = _first(rights)
        if one is None or other is None or may_be_equal(one, other):
            return
        if any(may_be_equal(one, each) for each in rights):
            return
        text = (
            f"{self.where}: the keys of the two sides have different types, so they will not "
            f"match: {_described(self.left, one)} on the left, and {_described(self.right, other)} "
            "on the right"
        )
        warnings.warn(text, PyriteWarning, stacklevel=2)
        if logger.hasHandlers():  # if there are none, the warning is on stderr, which is the log
            logger.warning("%s", text)


def may_be_equal(one: Any, other: Any) -> bool:
    """Whether two keys have types whose values may be equal.

    >>> may_be_equal(1, 1.5), may_be_equal(1, "1"), may_be_equal(("a", 1), ("a", "1"))
    (True, False, False)
    """
    a, b = type(one), type(other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(may_be_equal, one, other))
    if one is None or other is None:
        return True  # None says nothing about the type of the other keys
    if isinstance(one, Number) and isinstance(other, Number):
        return True
    if {a, b} == {date, datetime}:
        return False
    return issubclass(a, b) or issubclass(b, a)


def _first(keys: Iterable[Any]) -> Any:
    return next((key for key in keys if key is not None and key is not Nothing.KEY), None)


def _described(function: Callable[[Any], Any], key: Any) -> str:
    return f"{describe(function)} returned {shorten(key)} ({type(key).__name__})"
