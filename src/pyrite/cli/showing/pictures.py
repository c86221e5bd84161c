"""How far a run is: a picture of a few lines for a terminal, and one line for everything else."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pyrite.cli.showing.vertices import vertices_table
from pyrite.watching.choosing import most_active, open_first
from pyrite.watching.views import RunView, StageView
from pyrite.watching.words import duration, rate, size


def picture_of(view: RunView, *, width: int, height: int) -> Group:
    """The stages with their tasks, the vertices with their rates, and a line about the whole. It
    has less than `height` lines."""
    room = max(6, height - 2)
    parts: list[RenderableType] = []
    stages = open_first(view.stages, max(2, room // 3))
    if stages:
        parts.append(_stages_table(stages, width))
        parts.extend(_left_out(len(view.stages) - len(stages), "stages"))
        room -= len(stages) + 2
    if any(each.received or each.emitted or each.queue_fill for each in view.vertices):
        vertices = most_active(view.vertices, max(1, room - 3))
        parts.append(vertices_table(vertices, width))
        parts.extend(_left_out(len(view.vertices) - len(vertices), "vertices"))
    parts.append(Text(whole_of(view), style="dim", overflow="ellipsis", no_wrap=True))
    if view.state == "starting":
        parts.append("")  # what Spark itself writes then has a line of its own
    return Group(*parts)


def whole_of(view: RunView) -> str:
    """The whole run in a few words.

    >>> whole_of(RunView(id="", job_id="", name="", kind="light", state="running", submitted=0.0,
    ...     seen=12.0))
    'running, 12.0 s'
    """
    words = [phase_of(view), duration(view.seconds)]
    memory = sum(member.memory_bytes for member in view.members)
    if memory:
        processes = len(view.members)
        words.append(f"{size(memory)} memory" + (f" of {processes} processes" * (processes > 1)))
    text = ", ".join(words)
    return text if view.waits_for is None else f"{text}; it {view.waits_for}"


def line_of(view: RunView) -> str:
    """How far a run is, for logs."""
    words = [f"{phase_of(view)} for {duration(view.seconds)}"]
    done, total = sum(s.done for s in view.stages), sum(s.total for s in view.stages)
    if total:
        words.append(f"{done:,} of {total:,} {_tasks(view)}")
    for count, per_second, which in (
        (view.items_in, view.rate_in, "in"),
        (view.items_out, view.rate_out, "out"),
    ):
        if count:
            speed = rate(per_second)
            words.append(f"{count:,} items {which}" + (f" ({speed})" if speed else ""))
    text = f"{view.name}: {', '.join(words)}"
    return text if view.waits_for is None else f"{text}; it {view.waits_for}"


def phase_of(view: RunView) -> str:
    is_for_spark = view.kind == "normal" and view.state == "starting"
    return "waiting for Spark to start" if is_for_spark else view.state


def _tasks(view: RunView) -> str:
    return "parts are complete" if view.kind == "durable" else "tasks are done"


def _stages_table(stages: Sequence[StageView], width: int) -> Table:
    is_wide = width >= 80
    bar = 24 if is_wide else 10
    counts = [f"{each.done:,} of {each.total:,}" for each in stages]
    speeds = [rate(each.rate) if each.done < each.total else "" for each in stages]
    others = bar + max(map(len, counts)) + max(map(len, speeds)) + 6
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("stage", no_wrap=True, overflow="ellipsis", max_width=max(8, width - others))
    table.add_column("", width=bar)
    table.add_column("done", justify="right", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    for each, count, speed in zip(stages, counts, speeds):
        progress = ProgressBar(total=max(each.total, 1), completed=each.done, width=bar)
        table.add_row(Text(each.label), progress, count, speed)
    return table


def _left_out(count: int, what: str) -> list[Text]:
    return [Text(f"and {count:,} more {what}", style="dim")] if count > 0 else []
