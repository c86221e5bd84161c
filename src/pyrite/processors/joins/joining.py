"""Steps before joins and co-groups, which take the keys; and the fold of a co-group. Its two sides
arrive as `(key, (side, item))`, partitioned by key. It spills like a grouping if memory is
short."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyrite.bad_records import Handling
from pyrite.processors.groups.aggregates import Nothing
from pyrite.processors.groups.aggregating import check_key, first_of
from pyrite.processors.groups.grouping import Grouping, known_group, spilling
from pyrite.processors.loops.inlining import call_or_inline
from pyrite.processors.loops.steps import Lines, Transform


@dataclass(frozen=True, slots=True)
class Keyed(Transform):
    """Turns an item into `(key, item)`. If `matches_only`, items whose key is None are dropped:
    they never match. Otherwise None travels as `Nothing.KEY`. `is_partitioned` says whether the
    edge that follows needs the key, or only the dict of the join."""

    key: Callable[[Any], Any]
    matches_only: bool
    is_partitioned: bool

    def lines(self, index: int, value: str, vertex: str) -> Lines:
        code = [f"key{index} = {call_or_inline(self.key, f'keyof{index}', value)}"]
        if self.matches_only:
            code += [f"if key{index} is None: continue", f"n{index} += 1"]
        else:
            code.append(f"if key{index} is None: key{index} = none{index}")
        code.append(f"v{index} = (key{index}, {self.carried(value)})")
        names = {f"keyof{index}": self.key, f"none{index}": Nothing.KEY}
        return Lines(f"v{index}", code, names, counts=self.matches_only)

    def handling_lines(self, index: int, value: str, vertex: str, handling: Handling) -> Lines:
        lines = self.lines(index, value, vertex)
        # A key that the join or its edge could not take is found here, with its item.
        lines.code.insert(1, f"valid{index}(key{index})")
        lines.names[f"valid{index}"] = _check_edge_key if self.is_partitioned else hash
        return lines.handling_errors(index, value, handling)

    def carried(self, value: str) -> str:
        """What travels with the key."""
        return value


@dataclass(frozen=True, slots=True)
class Side(Keyed):
    """Turns an item into `(key, (side, item))`."""

    side: int

    def carried(self, value: str) -> str:
        return f"({self.side}, {value})"


def _check_edge_key(key: Any) -> None:
    hash(key)
    check_key(key)


@dataclass(frozen=True, slots=True)
class CoGroup(Grouping):
    """Emits `(key, left items, right items)` for each key."""

    finishes = True

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        check = f"check{index}(key{index}); " if check_new_key else ""
        code = [
            *known_group(index),
            f"elif len(state) < limit{index}: {check}old{index} = state[key{index}] = ([], [])",
            *spilling(index, value),
            f"side{index}, item{index} = {value}[1]",
            f"old{index}[side{index}].append(item{index})",
        ]
        return self.grouping_lines(index, value, first_of, check_new_key, code, {})

    def key_function(self) -> Callable[[Any], Any]:
        return first_of

    def finished(self, results: Iterable[Any]) -> list[Any]:
        return [
            (None if key is Nothing.KEY else key, left, right) for key, (left, right) in results
        ]
