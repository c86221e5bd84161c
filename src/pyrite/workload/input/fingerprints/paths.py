"""The paths in a value: in lists, tuples, sets, dicts and dataclasses, at any depth."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

_PLAIN = frozenset((str, int, float, bool, bytes, type(None)))


def paths_in(value: Any) -> list[PurePath]:
    """Each path once, in the order in which they are found.

    >>> paths_in([1, {"a": (PurePath("x"), PurePath("y"))}, PurePath("x")])
    [PurePosixPath('x'), PurePosixPath('y')]
    """
    found: dict[PurePath, None] = {}
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if type(value) in _PLAIN:
            continue
        if isinstance(value, PurePath):
            found[value] = None
            continue
        children = _children(value)
        if children and id(value) not in seen:
            seen.add(id(value))
            waiting.extend(reversed(children))
    return list(found)


def _children(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple, set, frozenset)):
        return [] if set(map(type, value)) <= _PLAIN else list(value)
    if isinstance(value, Mapping):
        return [part for item in value.items() for part in item]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name, None) for each in dataclasses.fields(value)]
    return []
