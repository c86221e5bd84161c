"""The types of items, in the notation of Python, for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

MOST_LOOKED_AT = 20
"""How many elements of a container are looked at."""
MOST_IN_UNION = 4


def types_of(items: Iterable[Any]) -> str:
    """The type that all items have: a union if they differ, and empty if there are none.

    >>> types_of([1, 2]), types_of([("a", 1), ("b", 2.0)]), types_of([[], [1]])
    ('int', 'tuple[str, int | float]', 'list[int]')
    """
    return _together(list(items), depth=3)


def _together(values: list[Any], depth: int) -> str:
    kinds: dict[type, list[Any]] = {}
    for value in values:
        kinds.setdefault(type(value), []).append(value)
    names = [_name(kind, some, depth) for kind, some in kinds.items()]
    if len(names) > MOST_IN_UNION:
        names = [*names[:MOST_IN_UNION], "…"]
    return " | ".join(names)


def _name(kind: type, values: list[Any], depth: int) -> str:
    name = "None" if kind is type(None) else kind.__qualname__
    try:
        return _with_parts(name, kind, values, depth) if depth else name
    except Exception:  # a container of the user's own that cannot be iterated over
        return name


def _with_parts(name: str, kind: type, values: list[Any], depth: int) -> str:
    if issubclass(kind, tuple) and not hasattr(kind, "_fields"):
        return f"{name}[{_elements(values, depth)}]"
    if issubclass(kind, Mapping):
        pairs = [pair for value in values for pair in _some(value.items())]
        keys, inside = ([pair[n] for pair in pairs] for n in (0, 1))
        parts = [_together(keys, depth - 1), _together(inside, depth - 1)] if pairs else []
    elif issubclass(kind, (list, Set)):
        inside = [each for value in values for each in _some(value)]
        parts = [_together(inside, depth - 1)] if inside else []
    else:
        parts = []
    return f"{name}[{', '.join(parts)}]" if parts else name


def _elements(tuples: list[Any], depth: int) -> str:
    """The types of the elements of tuples, by position if all tuples have the same length."""
    if len({len(each) for each in tuples}) > 1 or len(tuples[0]) > MOST_LOOKED_AT:
        inside = [one for each in tuples for one in _some(each)]
        return f"{_together(inside, depth - 1)}, ..."
    return ", ".join(_together(list(column), depth - 1) for column in zip(*tuples)) or "()"


def _some(values: Iterable[Any]) -> list[Any]:
    return [value for value, _ in zip(values, range(MOST_LOOKED_AT))]
