"""The elements of a result: what `over=` of a map takes apart, so that each element gets a job."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from pyrite.errors import PyriteError
from pyrite.functions import shorten


class Elements(list[Any]):
    """A result whose elements are stored separately, so that each can be read alone."""


class NotElements(PyriteError):
    """The result of a job has no elements in a known order."""


def elements_of(result: Any, *, job: str) -> Elements:
    """The elements of the result of a job, in their order. Raises NotElements.

    >>> elements_of(range(3), job="shards")
    [0, 1, 2]
    """
    kind = type(result).__name__
    advice = f"return a list from '{job}'"
    if isinstance(result, Mapping):
        advice = "return a list of its keys, values or items"
    elif isinstance(result, Set):
        advice = "a set has no order; return a sorted list"
    elif hasattr(result, "columns"):  # a table
        advice = "return a list, for example of dicts, one per row"
    elif not isinstance(result, (str, bytes, bytearray)) and hasattr(result, "__len__"):
        try:
            return Elements(result)
        except TypeError:  # for example an array without dimensions
            pass
    raise NotElements(
        f"the result of '{job}' must be a list, or a sequence of another type, so that each "
        f"element gets a job; it is {shorten(result)} of type {kind}; {advice}"
    )
