"""Compares the items of two runs, whatever their order. Pure.

Items are equal if they have the same type and equal parts: objects without an `==` of their own are
compared by their attributes, because items are copied between runs.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum, IntEnum
from types import BuiltinFunctionType, FunctionType
from typing import Any

import cloudpickle

TOLERANCE = 1e-9
"""Floats that differ by no more, absolutely or relatively, differ by rounding."""

_DEEPEST = 50
"""Values that are nested deeper are compared by their pickles."""
_MOST_MATCHED = 200
"""Up to so many items are matched one by one, if they do not match in order."""


class Difference(IntEnum):
    """How much the items of two runs differ. Each kind includes those before it."""

    NONE = 0
    ROUNDING = 1
    LIST_ORDER = 2
    """Only the order of the elements of lists inside items."""
    ITEMS = 3


def difference(one: Sequence[Any], two: Sequence[Any]) -> Difference:
    """How the items of two runs differ.

    >>> difference([1, 2], [2, 1]), difference([0.1 + 0.2], [0.3])
    (<Difference.NONE: 0>, <Difference.ROUNDING: 1>)
    >>> difference([[1, 2]], [[2, 1]]), difference([1], [1, 1])
    (<Difference.LIST_ORDER: 2>, <Difference.ITEMS: 3>)
    """
    only_one, only_two = leftover([plain(item) for item in one], [plain(item) for item in two])
    if not only_one and not only_two:
        return Difference.NONE
    if len(only_one) != len(only_two):
        return Difference.ITEMS
    if _match(only_one, only_two):
        return Difference.ROUNDING
    if _match([_in_order(item) for item in only_one], [_in_order(item) for item in only_two]):
        return Difference.LIST_ORDER
    return Difference.ITEMS


def only_in(one: Sequence[Any], two: Sequence[Any]) -> list[Any]:
    """The items of the first run that the second does not have."""
    left = Counter(map(plain, two))
    found = []
    for item in one:
        if left[plain(item)]:
            left[plain(item)] -= 1
        else:
            found.append(item)
    return found


def leftover(one: list[Any], two: list[Any]) -> tuple[list[Any], list[Any]]:
    """What is only in one of two multisets."""
    first, second = Counter(one), Counter(two)
    return list((first - second).elements()), list((second - first).elements())


def plain(value: Any) -> Any:
    """A value as tuples and frozen sets of plain values, which can be compared and hashed."""
    try:
        return _plain(value, 0)
    except Exception:  # it refers to itself, or is a container that cannot be iterated over
        return _opaque(value)


def _plain(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise RecursionError
    kind = type(value)
    if value is None or kind in (bool, int, str, bytes):
        return value
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(value)
    if isinstance(value, Mapping):
        return _Part(
            "dict", _counted((_plain(k, depth + 1), _plain(v, depth + 1)) for k, v in value.items())
        )
    if isinstance(value, list):
        return _Part("list", tuple(_all(value, depth)))
    if isinstance(value, tuple):
        return _Part("tuple", tuple(_all(value, depth)))
    if isinstance(value, Set):
        return _Part("set", _counted(_all(value, depth)))
    return _plain_object(value, depth)


def _all(values: Iterable[Any], depth: int) -> Iterator[Any]:
    return (_plain(value, depth + 1) for value in values)


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """A container or an object, as what it consists of."""

    kind: str
    inside: Any


def _counted(values: Iterable[Any]) -> frozenset[tuple[Any, int]]:
    return frozenset(Counter(values).items())


def _plain_object(value: Any, depth: int) -> Any:
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, Enum):
        return _Part(name, value.name)
    if isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        return _Part(name, f"{value.__module__}.{value.__qualname__}")
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(kind)]
        return _Part(name, _plain({each: getattr(value, each, None) for each in names}, depth + 1))
    if any("__eq__" in vars(each) for each in kind.__mro__[:-1]):
        try:
            hash(value)
            if value == value:
                return _Part(name, value)
        except Exception:  # an array, or another value that cannot be hashed or compared
            pass
    if hasattr(value, "tolist") and callable(value.tolist):
        return _Part(name, _plain(value.tolist(), depth + 1))
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict) and attributes:
        return _Part(name, _plain(attributes, depth + 1))
    return _opaque(value)


def _opaque(value: Any) -> _Part:
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    try:
        return _Part(name, cloudpickle.dumps(value))
    except Exception:
        return _Part(name, "")  # nothing is known about it


def _match(one: list[Any], two: list[Any]) -> bool:
    """Whether each plain value has its own one that is close to it."""
    pairs = zip(sorted(one, key=_rounded), sorted(two, key=_rounded))
    if all(_close(a, b) for a, b in pairs):
        return True
    if len(one) > _MOST_MATCHED:
        return False
    left = list(two)
    for value in one:
        found = next((n for n, other in enumerate(left) if _close(value, other)), None)
        if found is None:
            return False
        del left[found]
    return True


def _close(one: Any, two: Any) -> bool:
    if isinstance(one, (int, float)) and isinstance(two, (int, float)):
        return one == two or (
            float in (type(one), type(two))
            and math.isclose(one, two, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        )
    if isinstance(one, _Part) and isinstance(two, _Part):
        return one.kind == two.kind and _close(one.inside, two.inside)
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(map(_close, one, two))
    if isinstance(one, frozenset) and isinstance(two, frozenset):
        return len(one) == len(two) and _match(list(one), list(two))
    return bool(one == two)


def _in_order(value: Any) -> Any:
    """A plain value in which the elements of lists are in an order of their own."""
    if isinstance(value, _Part):
        inside = _in_order(value.inside)
        if value.kind == "list":
            inside = tuple(sorted(inside, key=_rounded))
        return _Part(value.kind, inside)
    if isinstance(value, tuple):
        return tuple(map(_in_order, value))
    if isinstance(value, frozenset):
        return frozenset(map(_in_order, value))
    return value


def _rounded(value: Any) -> str:
    """A text by which close values are sorted next to each other, mostly."""
    if isinstance(value, float):
        return f"{value:.6e}"
    if isinstance(value, _Part):
        return f"{value.kind}({_rounded(value.inside)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_rounded, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_rounded, value)))}}}"
    return repr(value)
