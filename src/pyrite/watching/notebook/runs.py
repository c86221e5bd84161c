"""A run of a job as HTML: its DAG with counts and rates, its stages, its vertices, its failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyrite.drawing import Arrow, Box, escape, svg
from pyrite.watching.choosing import most_active, open_first
from pyrite.watching.notebook.frame import (
    Markup,
    bar,
    details,
    framed,
    graph,
    heading,
    note,
    side_by_side,
    table,
)
from pyrite.watching.vertex_table import columns_of
from pyrite.watching.views import EdgeView, Kind, RunView, StageView, VertexState, VertexView
from pyrite.watching.words import duration, rate, short, size

ROWS_SHOWN: Final = 50
STAGES_SHOWN: Final = 12

COLORS: Final[dict[VertexState, str]] = {
    "waiting": "#eeeeee",
    "running": "#ffe08a",
    "completed": "#a8d8a0",
    "failed": "#f2a19a",
    "cancelled": "#c8c8c8",
}


def run_html(view: RunView) -> str:
    """The run at the moment of the view."""
    return framed(
        heading(view.name, view.state, _facts(view)),
        _page(view),
        note(f"It {view.waits_for}.") if view.waits_for else "",
        _failure(view),
        _stages(view.stages),
        side_by_side(graph(svg(*_shape(view))), _vertices(view.vertices)),
    )


def _facts(view: RunView) -> list[str]:
    memory = sum(member.memory_bytes for member in view.members)
    return [
        _KINDS[view.kind],
        duration(view.seconds),
        _items(view.items_in, view.rate_in, "in"),
        _items(view.items_out, view.rate_out, "out"),
        f"{size(memory)} memory" if memory else "",
    ]


_KINDS: Final[dict[Kind, str]] = {
    "light": "light job",
    "light on members": "light job on members",
    "normal": "job on Spark",
    "durable": "durable job",
}


def _items(count: int, per_second: float, which: str) -> str:
    speed = rate(per_second)
    return f"{count:,} items {which}{f' ({speed})' if speed else ''}" if count else ""


def _page(view: RunView) -> str:
    if view.page is None or not view.page.startswith(("http://", "https://")):
        return ""
    link = f'<a href="{escape(view.page)}" rel="noopener" target="_blank">Spark\'s page</a>'
    return f'<div class="pyrite-note">{link}</div>'


def _failure(view: RunView) -> str:
    failure = view.failure
    if failure is None:
        return ""
    trace = details("traceback", failure.traceback) if failure.traceback else ""
    return note(failure.message, kind="bad") + trace


def _stages(stages: Sequence[StageView]) -> str:
    if not stages:
        return ""
    shown = open_first(stages, STAGES_SHOWN)
    rows = [
        (
            each.label,
            Markup(bar(each.done, each.total)),
            f"{each.done:,} of {each.total:,}",
            rate(each.rate) if each.done < each.total else "",
        )
        for each in shown
    ]
    return table(("stage", "", "done", ""), rows, texts=2) + _left_out(
        len(stages) - len(shown), "stages"
    )


def _vertices(vertices: Sequence[VertexView]) -> str:
    shown = most_active(vertices, ROWS_SHOWN)
    columns = columns_of(shown)
    rows = zip(
        [each.name for each in shown],
        [each.state for each in shown],
        *(column.cells for column in columns),
    )
    titles = ["vertex", "state", *(column.title for column in columns)]
    return table(titles, rows, texts=2) + _left_out(len(vertices) - len(shown), "vertices")


def _left_out(count: int, what: str) -> str:
    return note(f"and {count:,} more {what}") if count > 0 else ""


def _shape(view: RunView) -> tuple[list[Box], list[Arrow]]:
    fed = {edge.destination for edge in view.edges}
    feeding = {edge.source for edge in view.edges}
    boxes = [
        Box(
            each.name,
            _counts(each, is_source=each.name not in fed, is_sink=each.name not in feeding),
            COLORS[each.state],
        )
        for each in view.vertices
    ]
    return boxes, [Arrow(each.source, each.destination, _label(each)) for each in view.edges]


def _counts(vertex: VertexView, *, is_source: bool, is_sink: bool) -> str:
    """The notes of a box: the items so far, and how fast they go."""
    words = [] if is_source else [f"{short(vertex.received)} in"]
    if not is_sink or is_source:
        words.append(f"{short(vertex.emitted)} out")
    speed = rate(max(vertex.received_rate, vertex.emitted_rate))
    return "\n".join([" · ".join(words), *([speed] if speed else [])])


def _label(edge: EdgeView) -> str:
    if not edge.fill:
        return edge.label
    full = f" of {short(edge.capacity)}" if edge.capacity else ""
    return f"{edge.label} · {short(edge.fill)}{full} wait".removeprefix(" · ")
