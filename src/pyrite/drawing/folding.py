"""Large graphs, folded: boxes that belong together become one, so that a person can read the rest.
A folded graph has no cycle, if the graph has none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyrite.drawing.boxes import Arrow, Box
from pyrite.drawing.layered.ranks import Edge, in_order, without_cycles

BOXES_MAX: Final = 60
"""A graph with at most so many boxes is not folded, unless it is very wide."""
WIDEST: Final = 16
ALL: Final = "*"

_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Folded:
    """`members` has the boxes of each group, by the name of the box that stands for it."""

    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    members: Mapping[str, Sequence[Box]]


def folded(
    boxes: Sequence[Box],
    arrows: Sequence[Arrow],
    *,
    unfold: Collection[str] = (),
    noun: str = "vertices",
) -> Folded:
    """The graph, folded if it is large. The groups named in `unfold` stay open; ALL opens all."""
    number = {box.name: n for n, box in enumerate(boxes)}
    edges = [(number[arrow.source], number[arrow.destination]) for arrow in arrows]
    names = [box.name for box in boxes]
    shown: list[Box] = []
    members: dict[str, Sequence[Box]] = {}
    stands_for = dict(zip(names, names))
    for group in [] if ALL in unfold else groups_of(names, edges):
        if len(group) == 1:
            continue
        name = name_of_group([names[n] for n in group])
        while name in number or name in members:
            name += "'"
        if name in unfold:
            continue
        members[name] = [boxes[n] for n in group]
        stands_for.update((names[n], name) for n in group)
    for box in boxes:
        name = stands_for[box.name]
        if name == box.name:
            shown.append(box)
        elif members[name][0] is box:
            shown.append(Box(name, _note(members[name], noun)))
    merged: dict[tuple[str, str], list[Arrow]] = {}
    for arrow in arrows:
        ends = stands_for[arrow.source], stands_for[arrow.destination]
        if ends[0] != ends[1] or arrow.source == arrow.destination:
            merged.setdefault(ends, []).append(arrow)
    joined: list[Arrow] = []
    for (source, destination), group_arrows in merged.items():
        if source in members or destination in members:
            labels = {arrow.label for arrow in group_arrows}
            label = labels.pop() if len(labels) == 1 else ""
            joined.append(Arrow(source, destination, label))
        else:
            joined.extend(group_arrows)
    return Folded(shown, joined, members)


def groups_of(
    names: Sequence[str], edges: Sequence[Edge], *, most: int = BOXES_MAX, widest: int = WIDEST
) -> list[list[int]]:
    """The vertices in groups; a vertex that is not folded is in one of its own. Numbered siblings
    are folded first, then those with the same neighbours, then chains, and last, if there are still
    too many, whole layers."""
    graph = _Quotient(names, edges, [[n] for n in range(len(names))])
    is_large = len(names) > most
    if not is_large and max(graph.widths().values(), default=0) <= widest:
        return graph.parts
    least = 3 if is_large else widest // 2
    rules: tuple[Callable[[_Quotient, int], Iterable[list[int]]], ...]
    rules = (_numbered, _with_same_neighbours, _chains)
    before = len(graph.parts) + 1
    while len(graph.parts) < before:
        before = len(graph.parts)
        for rule in rules:
            graph = graph.merged([each for each in rule(graph, least) if len(each) >= least])
            if len(graph.parts) <= most and max(graph.widths().values()) <= widest:
                return graph.parts
        if not is_large:
            return graph.parts
    return graph.merged(_bands(graph, most)).parts if len(graph.parts) > 4 * most else graph.parts


def name_of_group(names: Sequence[str]) -> str:
    """
    >>> name_of_group(["load2", "load10", "load1"]), name_of_group(["a1b7", "a2b8", "a3b9"])
    ('load[1..10]', 'a*b*')
    >>> name_of_group(["layer 5, step 1", "layer 5, step 3"])
    'layer 5, step [1..3]'
    >>> name_of_group(["clean-left", "clean-right"]), name_of_group(["read", "count", "sort"])
    ('clean-*', 'read … sort')
    """
    patterns = {_NUMBER.sub("\0", name) for name in names}
    if len(patterns) == 1:
        columns = [set(column) for column in zip(*map(_NUMBER.findall, names))]
        is_only_one = sum(len(column) > 1 for column in columns) == 1
        shown = (_numbers(column, is_range=is_only_one) for column in columns)
        return re.sub("\0", lambda _: next(shown, "*"), patterns.pop())
    low, high = min(names), max(names)  # what these begin with, all others begin with
    same = next((n for n, (a, b) in enumerate(zip(low, high)) if a != b), len(low))
    common = low[:same]
    return f"{common}*" if len(common) >= 3 else f"{names[0]} … {names[-1]}"


def _numbers(found: Collection[str], *, is_range: bool) -> str:
    if len(found) == 1:
        return next(iter(found))
    return f"[{min(map(int, found))}..{max(map(int, found))}]" if is_range else "*"


def _note(members: Sequence[Box], noun: str) -> str:
    """How many they are, or how many there are of each state."""
    notes = Counter(box.note for box in members)
    if not any(box.color for box in members):
        return f"{len(members):,} {noun}"
    return " · ".join(f"{count:,} {note}" for note, count in notes.most_common(2)) + (
        " …" if len(notes) > 2 else ""
    )


class _Quotient:
    """A graph whose vertices are groups of those of the given one."""

    def __init__(self, names: Sequence[str], edges: Sequence[Edge], parts: list[list[int]]) -> None:
        self._names = names
        self._edges = edges
        self.parts = parts
        part_of = [0] * len(names)
        for n, part in enumerate(parts):
            for vertex in part:
                part_of[vertex] = n
        found = dict.fromkeys((part_of[a], part_of[b]) for a, b in edges)
        own = without_cycles(len(parts), [(a, b) for a, b in found if a != b])
        self.above: list[set[int]] = [set() for _ in parts]
        self.below: list[set[int]] = [set() for _ in parts]
        for a, b in own:
            self.below[a].add(b)
            self.above[b].add(a)
        self.order = in_order(len(parts), own)
        self.rank = [0] * len(parts)
        for n in self.order:
            self.rank[n] = max((self.rank[other] + 1 for other in self.above[n]), default=0)

    def widths(self) -> Mapping[int, int]:
        return Counter(self.rank)

    def pattern(self, part: int) -> str:
        return _NUMBER.sub("#", self._names[self.parts[part][0]])

    def merged(self, groups: Iterable[list[int]]) -> _Quotient:
        """The parts of each group become one, at the place of the first of them."""
        into: dict[int, list[int]] = {}
        taken: set[int] = set()
        for group in groups:
            into[min(group)] = group
            taken.update(group)
        if not into:
            return self
        parts = [
            [v for member in into[n] for v in self.parts[member]] if n in into else part
            for n, part in enumerate(self.parts)
            if n in into or n not in taken
        ]
        return _Quotient(self._names, self._edges, parts)


def _numbered(graph: _Quotient, least: int) -> Iterable[list[int]]:
    """Parts of one layer whose names differ only in their numbers. Edges go from a layer to one
    further down, so there is no cycle between groups of one layer each."""
    found: dict[tuple[int, str], list[int]] = {}
    for n, rank in enumerate(graph.rank):
        found.setdefault((rank, graph.pattern(n)), []).append(n)
    return found.values()


def _with_same_neighbours(graph: _Quotient, least: int) -> Iterable[list[int]]:
    found: dict[tuple[frozenset[int], frozenset[int]], list[int]] = {}
    for n in range(len(graph.parts)):
        key = frozenset(graph.above[n]), frozenset(graph.below[n])
        found.setdefault(key, []).append(n)
    return found.values()


def _chains(graph: _Quotient, least: int) -> Iterable[list[int]]:
    """Paths of parts with one neighbour above and one below. Their ends are not in them, so that
    sources, sinks, forks and joins stay visible."""
    inside = {
        n for n in range(len(graph.parts)) if len(graph.above[n]) == 1 and len(graph.below[n]) == 1
    }
    chains: list[list[int]] = []
    last: dict[int, list[int]] = {}
    for n in graph.order:
        if n not in inside:
            continue
        (before,) = graph.above[n]
        chain = last.pop(before, None)
        if chain is None:
            chain = []
            chains.append(chain)
        chain.append(n)
        last[n] = chain
    return chains


def _bands(graph: _Quotient, most: int) -> Iterable[list[int]]:
    """Whole layers, and as many of them together as needed. Each vertex is in a layer below those
    of its neighbours above, so there is no cycle between bands."""
    layers = max(graph.rank) + 1
    found: dict[int, list[int]] = {}
    for n, rank in enumerate(graph.rank):
        found.setdefault(rank * most // max(most, layers), []).append(n)
    return found.values()
