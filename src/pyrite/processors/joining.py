"""Joins and co-groups. Both sides arrive as `(key, (side, item))`, partitioned by key, and a fold
brings together what has the same key. It spills like a grouping if memory is short."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, TypeAlias

from pyrite.processors.aggregates import Nothing
from pyrite.processors.aggregating import check_key, first_of
from pyrite.processors.grouping import Grouping, known_group, spilling
from pyrite.processors.inlining import call_or_inline
from pyrite.processors.key_types import JoinKeys
from pyrite.processors.steps import Lines, Transform

How: TypeAlias = Literal["inner", "left", "full", "semi", "anti"]
HOWS: tuple[How, ...] = ("inner", "left", "full", "semi", "anti")


@dataclass(frozen=True, slots=True)
class Side(Transform):
    """Turns an item into `(key, (side, item))`. If `matches_only`, items whose key is None are
    dropped: they never match."""

    key: Callable[[Any], Any]
    side: int
    matches_only: bool

    def lines(self, index: int, value: str, vertex: str) -> Lines:
        code = [f"key{index} = {call_or_inline(self.key, f'keyof{index}', value)}"]
        if self.matches_only:
            code += [f"if key{index} is None: continue", f"n{index} += 1"]
        else:
            code.append(f"if key{index} is None: key{index} = none{index}")
        code.append(f"v{index} = (key{index}, ({self.side}, {value}))")
        names = {f"keyof{index}": self.key, f"none{index}": Nothing.KEY}
        return Lines(f"v{index}", code, names, counts=self.matches_only)

    def handling_lines(self, index: int, value: str, vertex: str) -> Lines:
        lines = self.lines(index, value, vertex)
        # A key that no edge could carry is found here, with its item.
        lines.code.insert(1, f"valid{index}(key{index})")
        lines.names[f"valid{index}"] = check_key
        return lines.handling_errors(index, value)


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


@dataclass(frozen=True, slots=True)
class SidesOfJoin(CoGroup):
    """A co-group for a join. It looks at the types of the keys of both sides."""

    left: Callable[[Any], Any]
    right: Callable[[Any], Any]
    where: str = field(default="a join", compare=False)

    def results(self, state: dict[Any, Any]) -> list[Any]:
        lefts = (key for key, sides in state.items() if sides[0])
        rights = (key for key, sides in state.items() if sides[1])
        JoinKeys(self.left, self.right, self.where).look(lefts, rights)
        return list(state.items())


@dataclass(frozen=True, slots=True)
class Matches:
    """The function from a co-group to the pairs of a join. It is for a flat map, because there may
    be more pairs than fit into memory."""

    how: How

    def __call__(self, group: tuple[Any, list[Any], list[Any]]) -> Iterator[Any]:
        key, left, right = group
        if key is None:
            return chain(joined(self.how, left, []), joined(self.how, [], right))
        return joined(self.how, left, right)


def joined(how: How, left: list[Any], right: list[Any]) -> Iterator[Any]:
    """What a join emits for the items of one key.

    >>> list(joined("left", [1, 2], [])), list(joined("inner", [1], ["a", "b"]))
    ([(1, None), (2, None)], [(1, 'a'), (1, 'b')])
    """
    if how == "semi" or how == "anti":
        return iter(left if bool(right) is (how == "semi") else ())
    if left and right:
        return ((one, other) for one in left for other in right)
    if how == "inner":
        return iter(())
    alone = ((one, None) for one in left)
    return alone if how == "left" else chain(alone, ((None, other) for other in right))
