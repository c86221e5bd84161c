"""The command `cancel`."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.markup import escape

from pyrite.cli.completing import open_jobs
from pyrite.cli.durable import Durable, DurableFile, place_of
from pyrite.cli.errors import say
from pyrite.cli.runs.choosing import chosen, has_ended, how, named
from pyrite.cli.runs.durable_jobs import cancel_durable
from pyrite.cli.runs.options import RunsOption
from pyrite.cli.showing.answers import Answer, JsonOption, answering
from pyrite.cli.showing.watch import QUIET_SECONDS, REFRESH_SECONDS
from pyrite.errors import PyriteError
from pyrite.interrupts import INTERRUPTED
from pyrite.watching.words import duration

if TYPE_CHECKING:
    from pyrite.ui.sources.runs import Runs
    from pyrite.watching.rows import RunRow
    from pyrite.watching.views import RunView

PATIENCE_SECONDS: Final = 30.0
"""A function that does not return cannot be stopped."""


def cancel(
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB",
            help="The id of a job, or its beginning, or the name of a job that has not ended.",
            autocompletion=open_jobs,
        ),
    ],
    durable: Durable = None,
    durable_file: DurableFile = None,
    runs: RunsOption = None,
    json: JsonOption = False,
) -> None:
    """Cancel a job that `pyrite jobs` lists, and wait until it is cancelled."""
    with answering(json) as answer:
        if durable is not None or durable_file is not None:
            cancel_durable(job, place_of(durable, durable_file), answer)
            return
        from pyrite.ui.opening import sources_of

        with sources_of(runs) as sources:
            nothing = f"there is no job '{job}'; to see all, run: pyrite jobs --all"
            row = chosen(job, sources.runs.rows(), nothing=nothing)
            if row.has_ended:
                raise has_ended(row)
            _cancel(row, sources.runs, answer)


def _cancel(row: RunRow, runs: Runs, answer: Answer) -> None:
    from pyrite.ui.sources.deployments import Deployment

    found = runs.find(row.id)
    if found is not None and isinstance(found.source, Deployment):
        cancel_durable(row.id, found.source.place, answer)
        return
    if found is not None:
        found.source.cancel(row.id)
    try:
        view = _wait_for_end(row, runs)
    except KeyboardInterrupt:
        say(f"{escape(named(row))} will be cancelled; this command does not wait any longer")
        raise typer.Exit(INTERRUPTED) from None
    if view.state != "cancelled":
        raise PyriteError(f"{named(row)} {how(view.state)} before it could be cancelled")
    answer.give({"id": row.id, "name": row.name, "state": view.state})
    answer.console.print(f"{named(row)} is cancelled", markup=False, highlight=False)


def _wait_for_end(row: RunRow, runs: Runs) -> RunView:
    began = time.monotonic()
    with ExitStack() as showing:
        spinner = None
        while True:
            found = runs.find(row.id)
            if found is None:
                raise PyriteError(f"{named(row)} is not recorded any more")
            if found.view.has_ended:
                return found.view
            seconds = time.monotonic() - began
            if seconds > PATIENCE_SECONDS:
                raise PyriteError(
                    f"{named(row)} has not ended {PATIENCE_SECONDS:g} s after it was asked to: one "
                    "of its functions may not return. It is cancelled as soon as it does; to end "
                    f"it at once, end the process {row.pid} on {row.host}"
                )
            if seconds > QUIET_SECONDS:
                text = f"waiting until the job is cancelled, {duration(seconds)}"
                if spinner is None:
                    spinner = showing.enter_context(Console(stderr=True).status(text))
                spinner.update(text)
            time.sleep(REFRESH_SECONDS)
