"""What `jobs --durable` and `cancel --durable` do: they list the durable jobs of one place, and
cancel one of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pyrite.cli.errors import say
from pyrite.cli.looking import command, existing_store, moment
from pyrite.cli.runs.choosing import chosen, has_ended, how, named
from pyrite.cli.showing.answers import Answer
from pyrite.cli.showing.watch import QUIET_SECONDS, REFRESH_SECONDS
from pyrite.errors import PyriteError
from pyrite.functions import shorten_text
from pyrite.interrupts import INTERRUPTED
from pyrite.watching.words import duration

if TYPE_CHECKING:
    from pyrite.durable.client.overview import JobRow
    from pyrite.durable.store.store import Store

ROWS_SHOWN: Final = 20
LONGEST_FAILURE: Final = 300
LEADER_SECONDS: Final = 3.0
"""A coordinator that has just died is replaced by a stand-by in this time."""
STYLES: Final = {
    "completed": "green",
    "failed": "red",
    "failing": "red",
    "cancelled": "yellow",
    "cancelling": "yellow",
}


def list_durable(place: str, *, everything: bool, answer: Answer) -> None:
    """The newest first. It reads the store and starts nothing, so it works while nobody runs the
    jobs."""
    from pyrite.durable.client.overview import overview

    with existing_store(place) as store:
        found = overview(store).jobs
    open_jobs = [row for row in found if not row.has_ended]
    ended = [row for row in found if row.has_ended]
    shown = ended if everything else ended[:ROWS_SHOWN]
    rows = [row for row in found if row in open_jobs or row in shown]
    answer.give({"jobs": [_document(row) for row in rows], "total": len(found)})
    console = answer.console
    if not rows:
        console.print("there are no durable jobs", highlight=False)
        return
    console.print(_table(rows))
    _show_notes(rows, console)
    if len(shown) < len(ended):
        text = f"{len(ended) - len(shown)} ended jobs are not shown; to see all, run: " + command(
            "jobs --all", place
        )
        console.print(text, style="dim", markup=False, highlight=False, soft_wrap=True)


def _document(row: JobRow) -> dict[str, Any]:
    more = {"kind": "durable", "state": row.status, "parts": row.parts, "complete": row.complete}
    return {**asdict(row), **more}


def _table(rows: Sequence[JobRow]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("id", no_wrap=True)
    table.add_column("name", overflow="ellipsis", no_wrap=True, max_width=40)
    table.add_column("status", no_wrap=True)
    table.add_column("submitted", no_wrap=True)
    table.add_column("parts done", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.id,
            escape(row.name or ""),
            f"[{STYLES.get(row.status, 'none')}]{row.status}[/]",
            moment(row.submitted),
            f"{row.complete} of {row.parts}" if row.tasks else "",
        )
    return table


def _show_notes(rows: Sequence[JobRow], console: Console) -> None:
    """What does not fit into a table: why a job failed, and what it waits for."""
    notes = []
    for row in rows:
        if row.failure is not None:
            failure = row.failure.removeprefix("the job failed").removeprefix(": ").lstrip()
            notes.append((row.id, f"failed: {shorten_text(failure, LONGEST_FAILURE)}"))
        elif row.waits_for is not None:
            notes.append((row.id, row.waits_for))
    if notes:
        console.print()
    for id, text in notes:
        console.print(f"{id} {text}", markup=False, highlight=False, soft_wrap=True)


def cancel_durable(job: str, place: str, answer: Answer) -> None:
    """Cancels a durable job, and waits until it is cancelled."""
    from pyrite.durable.client.overview import overview
    from pyrite.durable.client.watching import cancel_job

    with ExitStack() as closing:
        store = closing.enter_context(existing_store(place))
        hint = f"to see all, run: {command('jobs --all', place)}"
        nothing = f"there is no durable job '{job}'; {hint}"
        found = chosen(job, overview(store).jobs, nothing=nothing)
        if found.has_ended:
            raise has_ended(found)
        cancel_job(store, found.id)
        try:
            end = _wait_for_end(store, found.id, place, closing)
        except KeyboardInterrupt:
            say(f"{escape(named(found))} will be cancelled; this command does not wait any longer")
            raise typer.Exit(INTERRUPTED) from None
        if end != "cancelled":
            raise PyriteError(f"{named(found)} {how(end)} before it could be cancelled")
        answer.give({"id": found.id, "name": found.name, "state": end})
        answer.console.print(f"{named(found)} is cancelled", markup=False, highlight=False)


def _wait_for_end(store: Store, id: str, place: str, closing: ExitStack) -> str:
    """How the job ended. In a folder that nobody leads a coordinator is started for it."""
    from pyrite.durable.client.overview import coordinators
    from pyrite.durable.hosts.keeper import Keeper
    from pyrite.durable.hosts.places import is_folder
    from pyrite.durable.protocol.tree import paths
    from pyrite.durable.protocol.tree.nodes import JobNode

    console = Console(stderr=True)
    began = led = time.monotonic()
    keeper: Keeper | None = None
    with ExitStack() as showing:
        spinner = None
        while True:
            node = store.watch(paths.job(id))
            if node is not None and (status := JobNode.read(node).status).has_ended:
                return ENDS[status.value]
            now = time.monotonic()
            if coordinators(store):
                led = now
            elif keeper is None and is_folder(place):
                keeper = Keeper(place, ["coordinator"])
                closing.callback(keeper.close)
                keeper.start()
                say("no coordinator is running here, so this command starts one until it ends")
            elif keeper is None and now - led > LEADER_SECONDS:
                raise PyriteError(
                    "no coordinator is running; the job will be cancelled as soon as one is. Start "
                    f"one with: {command('coordinator', place)}"
                )
            if now - began > QUIET_SECONDS:
                text = f"waiting until the job is cancelled, {duration(now - began)}"
                if spinner is None:
                    spinner = showing.enter_context(console.status(text))
                spinner.update(text)
            store.changed(REFRESH_SECONDS)


ENDS: Final = {"complete": "completed", "failed": "failed", "cancelled": "cancelled"}
