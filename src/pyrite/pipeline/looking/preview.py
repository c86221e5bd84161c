"""What `preview` returns: for each vertex, what came in and went out when a sample of the sources
was run."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from pyrite.context import Collections
from pyrite.dag import DAG, Vertex
from pyrite.errors import InvalidDAG, JobFailed, PyriteError
from pyrite.functions import shorten, shorten_text
from pyrite.pipeline.looking.rows import row_by_row
from pyrite.pipeline.looking.sampling import sample_suppliers
from pyrite.pipeline.looking.types import types_of
from pyrite.pipeline.looking.watching import in_terms_of, watched
from pyrite.where import users_line

LEAST_BEFORE_CUT = 10_000
LEAST_KEPT = 10
ITEMS_SHOWN = 3
_ITEM_WIDTH, _ITEMS_WIDTH, _TYPE_WIDTH = 40, 80, 40


@dataclass(frozen=True, slots=True)
class PreviewedVertex:
    """What one vertex has done with a sample."""

    name: str
    received: int
    """The items that came in, over all its edges. 0 for a source."""
    emitted: int
    """The items that went out. 0 for a sink, which does not run in a preview."""
    skipped: int
    """The items that it could not process, if its `on_error` lets it go on. No dead letters are
    written."""
    items: tuple[Any, ...]
    """The first items that went out; for a sink, the first that came in, which it would write."""
    types: str
    """The type of these items, such as `tuple[str, int]`."""
    shown: tuple[str, ...]
    """The first items as text, as they were when they were emitted: a later step may have changed
    them."""
    is_source: bool
    is_sink: bool
    is_cut: bool
    """Whether the preview was stopped because this vertex emitted very many items."""
    origin: str | None
    """The file and line that added the vertex, if they are known."""

    @property
    def per_item(self) -> float | None:
        """How many items went out for each item that came in; None if that cannot be said."""
        if self.is_source or self.is_sink or not self.received:
            return None
        return self.emitted / self.received


class Preview(Sequence[PreviewedVertex]):
    """The vertices of a pipeline after a run over a sample, in topological order. `print` shows a
    table of them; `preview["map"]` is the vertex of that name."""

    def __init__(self, vertices: Sequence[PreviewedVertex]) -> None:
        self.vertices = tuple(vertices)

    @overload
    def __getitem__(self, key: int | str) -> PreviewedVertex: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[PreviewedVertex]: ...
    def __getitem__(self, key: int | str | slice) -> Any:
        if not isinstance(key, str):
            return self.vertices[key]
        by_name = {vertex.name: vertex for vertex in self.vertices}
        if key not in by_name:
            near = difflib.get_close_matches(key, by_name, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise PyriteError(f"there is no vertex '{key}' in this preview{hint}")
        return by_name[key]

    def __len__(self) -> int:
        return len(self.vertices)

    def __iter__(self) -> Iterator[PreviewedVertex]:
        return iter(self.vertices)

    def __str__(self) -> str:
        rows = [_HEADER, *map(_row, self.vertices)]
        if not any(vertex.skipped for vertex in self.vertices):
            rows = [(*row[:3], *row[4:]) for row in rows]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = [
            "  ".join(
                cell.rjust(width) if 1 <= number < len(row) - 2 else cell.ljust(width)
                for number, (cell, width) in enumerate(zip(row, widths))
            ).rstrip()
            for row in rows
        ]
        cut = [vertex for vertex in self.vertices if vertex.is_cut]
        lines += [
            f"The preview was stopped when '{vertex.name}' had emitted {vertex.emitted:,} items; "
            "what follows it has not got all of them."
            for vertex in cut
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def _row(vertex: PreviewedVertex) -> tuple[str, ...]:
    items = shorten_text(", ".join(vertex.shown[:ITEMS_SHOWN]), _ITEMS_WIDTH)
    count = vertex.received if vertex.is_sink else vertex.emitted
    if count > ITEMS_SHOWN and not items.endswith("…"):
        items += ", …"
    ratio = vertex.per_item
    return (
        vertex.name,
        "" if vertex.is_source else f"{vertex.received:,}",
        "" if vertex.is_sink else f"{vertex.emitted:,}{'+' if vertex.is_cut else ''}",
        f"{vertex.skipped:,}" if vertex.skipped else "",
        "" if ratio is None else f"{ratio:.3g}" if ratio < 1000 else f"{ratio:,.0f}",
        shorten_text(vertex.types, _TYPE_WIDTH),
        items,
    )


_HEADER = ("vertex", "in", "out", "skipped", "per item", "type", "items")


@dataclass(slots=True)
class _Seen:
    """The items of an edge: how many, and the first of them."""

    kept: int
    most: int
    count: int = 0
    items: list[Any] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    """The identities of the first items: a vertex may emit the same items to several edges."""

    def __call__(self, item: Any) -> None:
        for each in row_by_row([item]):
            self._see(each)

    def _see(self, item: Any) -> None:
        self.count += 1
        if self.count <= self.kept:
            self.items.append(item)
            self.first.append(id(item))
            if self.count <= ITEMS_SHOWN:
                self.shown.append(shorten(item, _ITEM_WIDTH))
        if self.count > self.most:
            raise Enough


class Enough(Exception):
    """Ends a preview in which a vertex emits more and more items."""


def previewed(
    dag: DAG,
    count: int,
    run: Callable[[DAG], Mapping[str, Any]],
    *,
    collections: Collections | None = None,
    without: str | None = None,
) -> Preview:
    """Runs the first `count` items of each source of a DAG, and returns what was seen. `run` runs a
    DAG as a light job in this process, and returns its metrics. The vertex `without` is left
    out."""
    checked_sample("preview", count)
    dag.validate()
    most = max(LEAST_BEFORE_CUT, 100 * count)
    seen = {edge.name: _Seen(max(count, LEAST_KEPT), most) for edge in dag.edges}
    sample = watched(dag, seen, sample_suppliers(dag, count, collections), parallelism=1)
    metrics: Mapping[str, Any] = {}
    try:
        metrics = run(sample)
    except JobFailed as error:
        if not isinstance(error.__cause__, Enough):
            failed = in_terms_of(dag, error, "the preview")
            raise failed from failed.__cause__
    return Preview(
        [
            _vertex(dag, vertex, seen, metrics.get(vertex.name, {}).get("skipped", 0))
            for vertex in dag
            if vertex.name != without
        ]
    )


def checked_sample(method: str, count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidDAG(
            f"n of {method}() in {users_line()} must be a whole number from 1 up, the number of "
            f"items to read from each source; got {shorten(count)}"
        )


def _vertex(dag: DAG, vertex: Vertex, seen: dict[str, _Seen], skipped: int) -> PreviewedVertex:
    came = [seen[edge.name] for edge in dag.inbound(vertex)]
    went = _distinct([seen[edge.name] for edge in dag.outbound(vertex)])
    is_sink = not dag.outbound(vertex)
    shown = came if is_sink else went
    items = [item for each in shown for item in each.items]
    return PreviewedVertex(
        name=vertex.name,
        received=sum(each.count for each in came),
        emitted=sum(each.count for each in went),
        skipped=skipped,
        items=tuple(items),
        types=types_of(items),
        shown=tuple(text for each in shown for text in each.shown),
        is_source=not came,
        is_sink=is_sink,
        is_cut=any(each.count > each.most for each in went),
        origin=vertex.origin,
    )


def _distinct(edges: list[_Seen]) -> list[_Seen]:
    """Without the edges that got the same items as an earlier one."""
    found: list[_Seen] = []
    for edge in edges:
        if not any(edge.count == one.count and edge.first == one.first for one in found):
            found.append(edge)
    return found
