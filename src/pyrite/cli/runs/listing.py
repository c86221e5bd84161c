"""The command `jobs`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pyrite.cli.durable import Durable, DurableFile, place_of
from pyrite.cli.looking import moment
from pyrite.cli.runs.durable_jobs import LONGEST_FAILURE, ROWS_SHOWN, list_durable
from pyrite.cli.runs.options import RunsOption
from pyrite.cli.showing.answers import Answer, JsonOption, answering
from pyrite.cli.showing.columns import Column, table_of
from pyrite.functions import shorten_text
from pyrite.watching.words import duration, rate

if TYPE_CHECKING:
    from pyrite.watching.rows import RunRow

STYLES: Final = {
    "running": "bold",
    "completed": "green",
    "failed": "red",
    "lost": "red",
    "cancelled": "yellow",
}


class State(str, Enum):
    starting = "starting"
    running = "running"
    completed = "completed"
    failed = "failed"
    cancelled = "cancelled"
    lost = "lost"


def jobs(
    durable: Durable = None,
    durable_file: DurableFile = None,
    runs: RunsOption = None,
    state: Annotated[
        list[State] | None,
        typer.Option(help="Show the jobs in this state only. May be given several times."),
    ] = None,
    all: Annotated[
        bool, typer.Option("--all", help="Show all ended jobs, even if there are many.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """List the jobs that run, and those that ended, the newest first.

    These are the jobs that commands have run, those of instances with ui=True or PYRITE_RUNS, and
    the durable jobs of the places that were used; with --durable, those of one place only. It reads
    what is recorded and starts nothing.
    """
    if (durable is not None or durable_file is not None) and (runs is not None or state):
        raise typer.BadParameter("--durable cannot be given together with --runs or --state")
    with answering(json) as answer:
        if durable is not None or durable_file is not None:
            list_durable(place_of(durable, durable_file), everything=all, answer=answer)
            return
        from pyrite.ui.opening import sources_of

        with sources_of(runs) as sources:
            rows = sources.runs.rows(states=[each.value for each in state or ()])
            _show(rows, everything=all, answer=answer)


def _show(rows: Sequence[RunRow], *, everything: bool, answer: Answer) -> None:
    ended = [row for row in rows if row.has_ended]
    left_out = set() if everything else {row.id for row in ended[ROWS_SHOWN:]}
    shown = [row for row in rows if row.id not in left_out]
    answer.give({"jobs": [row.to_json() for row in shown], "total": len(rows)})
    console = answer.console
    if not shown:
        console.print("there are no jobs", highlight=False)
        return
    console.print(table_of(_columns(shown, console.width), console.width))
    failed = [row for row in shown if row.failure]
    if failed:
        console.print()
    for row in failed:
        text = f"{row.id} failed: {shorten_text(row.failure or '', LONGEST_FAILURE)}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    if left_out:
        text = f"{len(left_out)} ended jobs are not shown; to see all, run: pyrite jobs --all"
        console.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)


def _columns(rows: Sequence[RunRow], width: int) -> list[Column]:
    longest = max(12, min(40, width - 34))
    columns = [
        Column(title="id", cells=[row.id for row in rows], is_text=True, is_whole=True),
        Column(title="name", cells=[shorten_text(row.name, longest) for row in rows], is_text=True),
        Column(
            title="state",
            cells=[row.state for row in rows],
            styles=[STYLES.get(row.state, "") for row in rows],
            is_text=True,
        ),
        Column(title="kind", cells=[row.kind for row in rows], rank=6, is_text=True),
        Column(title="submitted", cells=[moment(row.submitted) for row in rows], rank=3),
        Column(title="time", cells=[duration(row.seconds) for row in rows], rank=1),
        Column(title="items in", cells=[f"{row.items_in:,}" for row in rows], rank=4),
        Column(title="items out", cells=[f"{row.items_out:,}" for row in rows], rank=5),
        Column(
            title="in",
            cells=["" if row.has_ended else rate(row.rate_in) for row in rows],
            rank=2,
        ),
    ]
    return [column for column in columns if not column.rank or any(column.cells)]
