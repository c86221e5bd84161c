"""A join with a side that each processor holds in memory as a dict. That side arrives first, at
ordinal 1; the items at ordinal 0 look up their matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyrite.keys import one_nan
from pyrite.processor import AbstractProcessor
from pyrite.processors.joining import How, joined
from pyrite.processors.key_types import JoinKeys


@dataclass(frozen=True, slots=True)
class LookupJoin:
    """Makes the processors of the join. `how` is not `full`: each processor would emit the items of
    the right side that have no match."""

    how: How
    left: Callable[[Any], Any]
    right: Callable[[Any], Any]
    where: str = field(default="a join", compare=False)

    def __call__(self) -> _Lookup:
        return _Lookup(self)


class _Lookup(AbstractProcessor):
    def __init__(self, join: LookupJoin) -> None:
        self._how = join.how
        self._left, self._right = join.left, join.right
        self._keys = JoinKeys(join.left, join.right, join.where)
        self._table: dict[Any, list[Any]] = {}
        self._has_looked = False
        self._matched = self.flat_mapper(self._matches)

    def try_process_0(self, item: Any) -> bool:
        return self._matched(item)

    def try_process_1(self, item: Any) -> None:
        key = self._right(item)
        if key is not None:
            self._table.setdefault(one_nan(key), []).append(item)

    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        return self._table.items()

    def restore_snapshot(self, key: Any, value: Any) -> None:
        self._table[one_nan(key)] = value

    def _matches(self, item: Any) -> Iterator[Any]:
        key = self._left(item)
        if not self._has_looked:
            self._has_looked = True
            self._keys.look([key], self._table)
        return joined(
            self._how, [item], self._table.get(one_nan(key), []) if key is not None else []
        )
