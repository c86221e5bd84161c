"""What `top` shows at one moment: a row for each job and workload that runs or has just ended."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.console import Group
from rich.text import Text

from pyrite.cli.runs.listing import STYLES
from pyrite.cli.showing.columns import Column, table_of
from pyrite.watching.views import RunView, VertexView
from pyrite.watching.words import duration, rate, size

if TYPE_CHECKING:
    from pyrite.ui.sources.sources import Sources
    from pyrite.watching.rows import RunRow

RECENT_SECONDS: Final = 600.0
"""A job that ended within this time is shown, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopRow:
    """`done` is how many tasks, parts or jobs are done, of how many. `busiest` is the vertex whose
    processors were busy for the longest time, "name + 3" if it runs in one loop with three others;
    of a workload, how many jobs run."""

    id: str
    name: str
    kind: str
    state: str
    seconds: float
    is_open: bool
    rate_in: float = 0.0
    rate_out: float = 0.0
    done: str = ""
    busiest: str = ""
    memory_bytes: int = 0


def taken(sources: Sources) -> list[TopRow]:
    """Those that run first, then those that have ended, each the newest first."""
    now = time.time()
    rows = []
    for row in sources.runs.rows():
        if not row.has_ended:
            found = sources.runs.find(row.id)
            rows.append(_ended(row) if found is None else of_view(found.view))
        elif row.ended is None or now - row.ended < RECENT_SECONDS:
            rows.append(_ended(row))
    for each in sources.workloads.rows():
        workload = of_workload(each)
        if workload.is_open or now - (each["ended"] or 0.0) < RECENT_SECONDS:
            rows.append(workload)
    return sorted(rows, key=lambda row: not row.is_open)


def of_view(view: RunView) -> TopRow:
    done, total = sum(s.done for s in view.stages), sum(s.total for s in view.stages)
    busiest = busiest_of(view.vertices)
    return TopRow(
        id=view.id,
        name=view.name,
        kind=view.kind,
        state=view.state,
        seconds=view.seconds,
        is_open=not view.has_ended,
        rate_in=view.rate_in,
        rate_out=view.rate_out,
        done=f"{done:,} of {total:,}" if total else "",
        busiest="" if busiest is None else _loop(busiest),
        memory_bytes=sum(member.memory_bytes for member in view.members),
    )


def busiest_of(vertices: Sequence[VertexView]) -> VertexView | None:
    """The one whose processors were busy for the longest time; if no time is known, the one with
    most items. Vertices that run in one loop share their time: the first stands for all."""
    moved = [each for each in vertices if each.received or each.emitted or each.busy_seconds]
    in_loop = set[str]()
    firsts = []
    for each in moved:
        if each.name not in in_loop:
            in_loop.update(each.fused_with)
            firsts.append(each)
    return max(
        firsts,
        key=lambda each: (
            each.busy_seconds / max(1, each.processor_count),
            each.queue_fill,
            each.received + each.emitted,
        ),
        default=None,
    )


def _loop(first: VertexView) -> str:
    others = f" + {len(first.fused_with)}" if first.fused_with else ""
    return first.name + others


def of_workload(found: Mapping[str, Any]) -> TopRow:
    """From a row of the list of workloads."""
    counts: Mapping[str, int] = found["counts"]
    is_open = found["phase"] in ("starting", "running")
    open_states = ("WAITING", "READY", "ASSIGNED", "RUNNING")
    ended = sum(count for state, count in counts.items() if state not in open_states)
    running = counts.get("RUNNING", 0)
    seconds = time.time() - found["started"] if is_open and found["started"] else found["seconds"]
    return TopRow(
        id=found["key"],
        name=found["label"],
        kind="workload",
        state=found["phase"],
        seconds=seconds,
        is_open=is_open,
        done=f"{ended:,} of {sum(counts.values()):,}" if counts else "",
        busiest=f"{running} running" if running else "",
    )


def document_of(rows: Sequence[TopRow]) -> dict[str, Any]:
    return {"seen": time.time(), "jobs": [asdict(row) for row in rows]}


def picture_of(rows: Sequence[TopRow], *, width: int, height: int | None = None) -> Group:
    """A line about the whole, and a table of as many rows as there is room for."""
    open_rows = [row for row in rows if row.is_open]
    speed = rate(sum(row.rate_in for row in open_rows))
    words = [f"{len(open_rows)} running", f"{len(rows) - len(open_rows)} ended lately"]
    head = Text(", ".join([*words, *([f"{speed} in"] if speed else [])]), style="bold")
    if not rows:
        return Group(head, Text("no job runs; `pyrite jobs` lists those that ended", style="dim"))
    shown = rows if height is None else rows[: max(1, height - 3)]
    left_out = len(rows) - len(shown)
    more = [Text(f"and {left_out:,} more", style="dim")] if left_out else []
    return Group(head, table_of(_columns(shown), width), *more)


def _ended(row: RunRow) -> TopRow:
    return TopRow(
        id=row.id,
        name=row.name,
        kind=row.kind,
        state=row.state,
        seconds=row.seconds,
        is_open=not row.has_ended,
    )


def _columns(rows: Sequence[TopRow]) -> list[Column]:
    columns = [
        Column(title="job", cells=[row.name for row in rows], is_text=True),
        Column(
            title="state",
            cells=[row.state for row in rows],
            styles=[STYLES.get(row.state, "") for row in rows],
            is_text=True,
        ),
        Column(title="time", cells=[duration(row.seconds) for row in rows]),
        Column(title="in", cells=[rate(row.rate_in) for row in rows], rank=1),
        Column(title="out", cells=[rate(row.rate_out) for row in rows], rank=2),
        Column(title="done", cells=[row.done for row in rows], rank=3),
        Column(
            title="busiest", cells=[_middle_out(row.busiest) for row in rows], rank=4, is_text=True
        ),
        Column(
            title="memory",
            cells=[size(row.memory_bytes) if row.memory_bytes else "" for row in rows],
            rank=5,
        ),
        Column(title="kind", cells=[row.kind for row in rows], rank=6, is_text=True),
        Column(title="id", cells=[row.id for row in rows], rank=7, is_text=True),
    ]
    return [column for column in columns if not column.rank or any(column.cells)]


def _middle_out(text: str, limit: int = 30) -> str:
    """A long text without its middle: its end says how many others there are.

    >>> _middle_out("the mean of all the prices of all the orders + 3")
    'the mean of all the p…ders + 3'
    """
    return text if len(text) <= limit else f"{text[: limit - 9]}…{text[-8:]}"
