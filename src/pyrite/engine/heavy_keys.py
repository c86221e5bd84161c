"""Finds the keys that have the most items on a partitioned edge, at next to no cost. Pure.

The first items are all looked at, of the next ones one of 16, and later fewer and fewer: each time
that their number doubles, about as many as before. Which ones depends on their positions alone, so
the same items give the same answer, but on no regular pattern that the keys may have, too. What is
seen is counted by a Misra-Gries sketch.
"""

from __future__ import annotations

import dis
import random
import re
from collections import _count_elements  # type: ignore[attr-defined]
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import MethodType
from typing import Any, Final

from pyrite.functions import shorten
from pyrite.keys import NAN_FREE, one_nan
from pyrite.weights import is_batch

EXACT: Final = 128
"""So many items are all looked at."""
FIRST_STRIDE: Final = 16
"""Then, one of so many."""
SAMPLES: Final = 256
"""Later, so many each time that the number of items doubles."""
CAPACITY: Final = 128
"""How many keys a sketch keeps. A count may be too small by one of so many items at most."""
FEWEST_HITS: Final = 4
"""A key that was met less often in a sample may be there by chance, and is not told."""
LONGEST: Final = 200
"""Of a key that is longer, only its hash and the start of its text are kept."""
_CHANCE: Final = random.Random(1)
_GAPS: Final = tuple(_CHANCE.random() for _ in range(1024))


def pruned(weights: Mapping[Any, int], capacity: int) -> dict[Any, int]:
    """At most `capacity` keys. Each weight becomes smaller by that of the heaviest key that is
    dropped: by no more than `total weight / (capacity + 1)`, also if this is done again and again.

    >>> pruned({"a": 9, "b": 4, "c": 3, "d": 1}, 2)
    {'a': 6, 'b': 1}
    """
    if len(weights) <= capacity:
        return dict(weights)
    less = sorted(weights.values(), reverse=True)[capacity]
    return {key: weight - less for key, weight in weights.items() if weight > less}


def is_repeatable(key: Callable[[Any], Any] | None) -> bool:
    """Whether nothing shows that a key function has another answer when it is called again. The
    sketch calls it again for some items, so it must not use up numbers of a seeded generator.

    >>> rng = random.Random(0)
    >>> is_repeatable(lambda row: row["shop"]), is_repeatable(lambda row: rng.randrange(4))
    (True, False)
    """
    code = getattr(key, "__code__", None)
    if code is None:
        return not (isinstance(key, MethodType) and _is_changing(key.__self__))
    if not _STORES.isdisjoint(code.co_code[::2]):
        return False
    names = getattr(key, "__globals__", {})
    used = [names.get(name) for name in code.co_names]
    used += getattr(key, "__defaults__", None) or ()
    try:
        used += [cell.cell_contents for cell in getattr(key, "__closure__", None) or ()]
    except ValueError:  # a name that has no value yet
        return False
    return not any(map(_is_changing, used))


def _is_changing(value: Any) -> bool:
    return (
        value is random
        or isinstance(value, random.Random)
        or hasattr(type(value), "__next__")
        or type(value).__module__.startswith("numpy.random")
    )


_STORES: Final = frozenset(dis.opmap[name] for name in ("STORE_GLOBAL", "STORE_DEREF"))


class HeavyKeys:
    """Sees the items that one processor receives from an edge that is partitioned by a function of
    the items, by the items themselves, or by columns. Another thread may read it at any time."""

    __slots__ = (
        "_by_rows",
        "_key_of",
        "_looks",
        "_next",
        "_stride",
        "_total",
        "_weights",
        "seen",
    )

    def __init__(
        self, key: Callable[[Any], Any] | None = None, columns: Sequence[str] | None = None
    ) -> None:
        self._by_rows = columns is not None
        self._key_of = _key_function(key, columns)
        self._weights: dict[Any, int] = {}
        self._total = 0
        """The weight of all that was looked at."""
        self._stride = 1
        """One of so many items is looked at now."""
        self._next = 0
        """The position of the next one."""
        self._looks = 0
        """How many items were looked at, after the first ones."""
        self.seen = 0
        """How many items have come. A batch counts as its rows."""

    def see(self, items: Sequence[Any], count: int) -> None:
        """Takes the next items, of which there are `count`."""
        start = self.seen
        self.seen = end = start + count
        if self._next >= end:
            return
        if is_batch(items[0]):
            if self._by_rows:
                self._see_rows(items, start)
            self._next = max(self._next, end)
            return
        if start < EXACT and self._stride == 1:
            self._see_all(items[: EXACT - start])
        while self._next < end:
            self._look_at(items[self._next - start])

    def _see_all(self, items: Sequence[Any]) -> None:
        """The first items, at once."""
        try:
            keys = list(map(self._key_of, items))
            if NAN_FREE.issuperset(map(type, keys)) and max(map(_length, keys)) <= LONGEST:
                self._total += len(keys)  # first: another thread divides by it
                _count_elements(self._weights, keys)
                self._next += len(keys)
        except Exception:  # one by one
            pass

    def _see_rows(self, items: Sequence[Any], start: int) -> None:
        for item in items:
            if not is_batch(item):
                if self._next == start:
                    self._look_at(item)
                start += 1
                continue
            while self._next < start + item.num_rows:
                self._look_at(item, self._next - start)
            start += item.num_rows

    def _look_at(self, *item: Any) -> None:
        weights, stride = self._weights, self._stride
        at = self._next
        if at >= EXACT:
            if at >= 2 * SAMPLES * stride:
                self._stride = stride = max(FIRST_STRIDE, 2 * stride)
            elif stride == 1:
                self._stride = stride = FIRST_STRIDE
            # Gaps between 1 and 2 * stride - 1 that have no pattern, but are always the same.
            self._next = at + 1 + int(_GAPS[self._looks & 1023] * (2 * stride - 1))
            self._looks += 1
        else:
            self._next = at + 1
        self._total += stride
        try:
            key = _kept(self._key_of(*item))
            weights[key] = weights.get(key, 0) + stride
        except Exception:  # the sender got the key of this item, so its function is not repeatable
            return
        if len(weights) > 2 * CAPACITY:
            self._weights = pruned(weights, CAPACITY)

    def heaviest(self, most: int) -> list[tuple[Any, int]]:
        """The keys with the most items, the heaviest first, and about how many they have."""
        weights, stride, total, seen = self._weights.copy(), self._stride, self._total, self.seen
        least = {1: 1, FIRST_STRIDE: 2 * FIRST_STRIDE}.get(stride, FEWEST_HITS * stride)
        found = [pair for pair in weights.items() if pair[1] >= least]
        found.sort(key=lambda pair: -pair[1])
        return [(key, round(weight * seen / total)) for key, weight in found[:most]]


def _kept(key: Any) -> Any:
    """What is kept of a key. It must not be large: a key may be the item itself."""
    kind = type(key)
    if kind is int or ((kind is str or kind is bytes) and len(key) <= LONGEST):
        return key
    if kind is tuple and len(key) <= LONGEST:
        return tuple(map(_kept, key))
    key = one_nan(key)
    if (kind in NAN_FREE and kind is not str and kind is not bytes) or isinstance(key, Enum):
        return key
    try:
        number = hash(key)
    except TypeError:  # a list or a dict
        return _Text(shorten(key))
    return key if kind is float else _Large((kind, number), without_address(shorten(key)))


def without_address(text: str) -> str:
    """A text without the address of an object, which Python's own repr has, also if it is cut.

    >>> without_address("(1, <Point object at 0x7f09>)")
    '(1, <Point object>)'
    """
    return _ADDRESS.sub("", text)


_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]*(?=>|…$)")


def _length(key: Any) -> int:
    return len(key) if type(key) is str or type(key) is bytes else 0


class _Text(str):
    """The repr of a key that is not hashable."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class _Large:
    """Stands for all keys of one type that have the same hash and the same start of their text."""

    __slots__ = ("_same", "_text")

    def __init__(self, same: tuple[type, int], text: str) -> None:
        self._same, self._text = same, text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Large) and self._same == other._same and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._same)

    def __repr__(self) -> str:
        return self._text


def _key_function(
    key: Callable[[Any], Any] | None, columns: Sequence[str] | None
) -> Callable[..., Any]:
    """A function that gives the key of an item; by columns, also that of a row of a batch."""
    if columns is None:
        return key if key is not None else _itself
    names = tuple(columns)

    def of_row(item: Any, row: int | None = None) -> Any:
        values = tuple(item[name] if row is None else item[name][row].as_py() for name in names)
        return values[0] if len(values) == 1 else values

    return of_row


def _itself(item: Any) -> Any:
    return item
