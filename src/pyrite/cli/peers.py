"""The commands `peers`, which runs virtual peers, and `peers status`, which shows them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pyrite.cli.cluster import Collections, CollectionsFile, collections_at
from pyrite.cli.durable import Durable, DurableFile, log_to_stderr, place_of
from pyrite.cli.errors import reporting_errors
from pyrite.cli.looking import command, existing_store
from pyrite.collections.opening import MEMORY

if TYPE_CHECKING:
    from pyrite.durable.client.overview import JobRow, Overview, PeerRow

app = typer.Typer(
    help="Run virtual peers of durable jobs; see what they do.", invoke_without_command=True
)

STYLES = {"active": "green", "lost": "red", "revoked": "red", "idle": "dim"}
MOST_PEERS = 512


@app.callback()
def peers(
    context: typer.Context,
    count: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--count",
            help="How many peers; default: one for each CPU, but at least 2.",
            min=1,
            max=MOST_PEERS,
        ),
    ] = None,
    durable: Durable = None,
    durable_file: DurableFile = None,
    collections: Collections = MEMORY,
    collections_file: CollectionsFile = None,
) -> None:
    """Run virtual peers of durable jobs, each in a process of its own, until SIGTERM or Ctrl-C.

    A peer that dies is started again. With a folder, leave out --collections: named maps and lists
    are in the folder.
    """
    if context.invoked_subcommand is not None:
        return
    from pyrite.cluster.hosts.signals import EndingSignals
    from pyrite.durable.hosts.keeper import Keeper
    from pyrite.durable.store.deployment import hidden

    with reporting_errors():
        place = place_of(durable, durable_file)
        url = checked_collections(place, collections_at(collections, collections_file))
        number = count or max(2, os.cpu_count() or 1)
        log_to_stderr("pyrite.durable", name="peers")
        with EndingSignals() as signals:
            keeper = Keeper(place, ["peer"] * number, collections=url)
            try:
                keeper.start()
                pids = " ".join(str(pid) for _, pid in keeper.processes())
                text = f"{number} peers run for {hidden(place)}; their processes are {pids}"
                Console().print(text, soft_wrap=True, highlight=False, markup=False)
                signals.wait()
            finally:
                keeper.close()


def checked_collections(place: str, url: str) -> str | None:
    """The URL of the Redis that a deployment needs; None for a folder, which needs none. Raises if
    the place cannot be used here."""
    from pyrite.durable.hosts.places import is_folder, open_collections
    from pyrite.wire.zookeeper import check_installed

    given = None if url == MEMORY else url
    if not is_folder(place):
        check_installed("a deployment")
    open_collections(place, given).close()
    return given


@app.command()
def status(
    context: typer.Context,
    durable: Durable = None,
    durable_file: DurableFile = None,
) -> None:
    """Show the peers, and the tasks of the jobs that have not ended.

    It reads the store and starts nothing, so it works while no coordinator runs.
    """
    from pyrite.durable.client.overview import overview

    with reporting_errors():
        place = place_of(*_given(context, durable, durable_file))
        with existing_store(place) as store:
            found = overview(store)
        show(found, place, Console())


def _given(
    context: typer.Context, durable: str | None, file: Path | None
) -> tuple[str | None, Path | None]:
    """`pyrite peers --durable X status` means the same as `pyrite peers status --durable X`."""
    before = context.parent.params if context.parent is not None else {}
    if before.get("count") is not None:
        raise typer.BadParameter("-n is for running peers; leave it out to see their status")
    if durable is None and file is None:
        return before.get("durable"), before.get("durable_file")
    return durable, file


def show(found: Overview, place: str, console: Console) -> None:
    _show_coordinators(found.coordinators, place, console)
    if found.peers:
        console.print(_peers_table(found.peers, {row.id: row for row in found.jobs}))
    else:
        _say(console, f"no peer is running; start some with: {command('peers -n 4', place)}")
    if any(row.state == "lost" for row in found.peers):
        what = "the processes of lost peers are gone; others get their parts"
        _say(console, what if found.coordinators else f"{what} when a coordinator runs")
    for job in found.jobs:
        if not job.has_ended:
            console.print()
            name = "" if job.name is None else f" '{job.name}'"
            _say(console, f"job {job.id}{name}: {job.status}")
            if job.waits_for is not None:
                _say(console, f"it {job.waits_for}", style="yellow")
            if job.tasks:
                console.print(_tasks_table(job))


def _show_coordinators(coordinators: Sequence[str], place: str, console: Console) -> None:
    if not coordinators:
        start = command("coordinator", place)
        _say(console, f"no coordinator is running; start one with: {start}", style="yellow")
        return
    first, *others = coordinators
    also = f"; stand-bys: {', '.join(others)}" if others else ""
    _say(console, f"the coordinator {first} leads{also}")


def _peers_table(rows: Sequence[PeerRow], jobs: dict[str, JobRow]) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in ("peer", "address", "state", "offer", "job", "task", "part"):
        right = name in ("offer", "part")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in rows:
        part = row.part
        job = None if part is None else jobs.get(part.job)
        table.add_row(
            row.name,
            escape(row.address),
            f"[{STYLES.get(row.state, 'none')}]{row.state}[/]",
            str(row.offer or ""),
            "" if part is None else escape((job and job.name) or part.job),
            "" if part is None else escape(part.task),
            "" if part is None else str(part.member),
        )
    return table


def _tasks_table(job: JobRow) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("task", overflow="fold")
    table.add_column("kind")
    for name in ("parts", "complete", "peers"):
        table.add_column(name, justify="right")
    for task in job.tasks:
        numbers = (task.parts, task.complete, task.peers)
        table.add_row(escape(task.name), task.kind, *map(str, numbers))
    return table


def _say(console: Console, text: str, *, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
