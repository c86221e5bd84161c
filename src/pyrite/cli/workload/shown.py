"""A run as a command shows it: the table of its jobs, and what can be said about the whole."""

from __future__ import annotations

import shlex
import time
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pyrite.cli.showing.answers import Answer
from pyrite.watching.words import duration
from pyrite.workload import JobState, Run
from pyrite.workload.progress import STYLES
from pyrite.workload.views.documents import killed_sentence, phase_of, run_document
from pyrite.workload.views.failures import log_command

ROWS_SHOWN = 100


def show(run: Run, answer: Answer, *, everything: bool = False) -> None:
    if answer.is_json:
        answer.give(run_document(run))
    else:
        _show(run, answer.console, everything=everything)


def _show(run: Run, console: Console, *, everything: bool) -> None:
    rows = run.table()
    interesting = [
        row
        for row in rows
        if everything
        or len(rows) <= ROWS_SHOWN
        or row["state"].is_failure
        or row["state"] is JobState.RUNNING
    ]
    shown = interesting if everything else interesting[:ROWS_SHOWN]
    if shown:
        console.print(_jobs_table(shown))
    store = shlex.quote(str(run.store))
    if len(shown) < len(rows):
        others = f"{len(rows) - len(shown)} other jobs are not shown; to see all, run: "
        _hint(console, f"{others}pyrite workload status {store} --all")
    counts = run.counts()
    words = ", ".join(
        f"[{STYLES.get(state, 'dim')}]{counts[state]} {state.value.lower()}[/]"
        for state in JobState
        if state in counts
    )
    length, longest = run.lengths()
    status = run.status
    phase = phase_of(run)
    seconds = (status.ended or time.time()) - status.started
    console.print(f"{phase} after {duration(seconds)}: {words}")
    console.print(
        f"time from the first start to the last end: {duration(length)}; critical path: "
        f"{duration(longest)}",
        style="dim",
    )
    if phase == "killed":
        console.print(f"[red]{escape(killed_sentence(status.master.pid))}[/]", soft_wrap=True)
    if status.problem:
        console.print(f"[red]{escape(status.problem)}[/]", soft_wrap=True)
    failed = run.failed()
    if failed:
        command = log_command(run.store, failed[0]["job"])
        _hint(console, f"to see why a job failed, run: {command}")
    if phase in ("killed", "broken", "cancelled"):
        _hint(console, f"to continue, run: pyrite workload resume {store}")


def _hint(console: Console, text: str) -> None:
    console.print(text, style="dim", markup=False, soft_wrap=True)


def _jobs_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in ("job", "state", "attempt", "worker", "seconds", "error"):
        table.add_column(
            name, justify="right" if name in ("attempt", "seconds") else "left", overflow="fold"
        )
    for row in rows:
        state: JobState = row["state"]
        seconds = row["seconds"]
        table.add_row(
            escape(row["job"]),
            f"[{STYLES.get(state, 'dim')}]{state.value}[/]"
            + ("" if row["selected"] else " [dim](not selected)[/]"),
            str(row["attempt"] or ""),
            row["worker"] or "",
            "" if seconds is None else f"{seconds:.3f}",
            escape(row["error"] or ""),
        )
    return table
