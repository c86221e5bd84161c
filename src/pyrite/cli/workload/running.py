"""The commands `run` and `resume`, which wait until the run has ended."""

from __future__ import annotations

import time
from enum import Enum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from pyrite.cli.errors import end_at_next_interrupt, say
from pyrite.cli.showing.answers import Answer, JsonOption, QuietOption, answering
from pyrite.cli.showing.watch import REFRESH_SECONDS, Pace, is_live
from pyrite.cli.workload.arguments import (
    FileArgument,
    FromOption,
    OnlyOption,
    StoreArgument,
    StoreOption,
    ToOption,
)
from pyrite.cli.workload.ending import cancel_run
from pyrite.cli.workload.files import read
from pyrite.cli.workload.shown import show
from pyrite.workload import JobState, Run
from pyrite.workload.progress import progress_line


class Kind(str, Enum):
    persistent = "persistent"
    transient = "transient"


class OnErrorOption(str, Enum):
    go_on = "continue"
    abridge = "abridge"
    stop = "stop"


def run(
    file: FileArgument,
    workers: Annotated[
        int | None, typer.Option(help="The number of workers. Default: one per core.", min=1)
    ] = None,
    store: StoreOption = None,
    kind: Annotated[Kind | None, typer.Option(help="The kind of workers.")] = None,
    on_error: Annotated[
        OnErrorOption | None, typer.Option(help="What happens to the other jobs when a job fails.")
    ] = None,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Also run the jobs that are up to date.")
    ] = False,
    only: OnlyOption = None,
    from_: FromOption = None,
    to: ToOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run the jobs of a file until all have ended. Jobs that are up to date are skipped."""
    with answering(json, quiet=quiet) as answer:
        written = read(
            file,
            workers=workers,
            store=store,
            kind=kind and kind.value,
            on_error=on_error and on_error.value,
            rerun=rerun or None,
        )
        part: dict[str, Any] = {"only": only or None, "from_": from_ or None, "to": to or None}
        _see_through(written.workload.run(written.schedule, **written.options, **part), answer)


def resume(
    store: StoreArgument,
    workers: Annotated[
        int | None, typer.Option(help="The number of workers. Default: as before.", min=1)
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Continue a run that was cancelled, broken or killed."""
    with answering(json, quiet=quiet) as answer:
        changes = {"workers": workers} if workers is not None else {}
        _see_through(Run.resume(store, **changes), answer)


def _see_through(run: Run, answer: Answer) -> None:
    """Waits for a run and shows its jobs. Exits with code 1 if a job failed. On Ctrl-C, cancels the
    run first."""
    try:
        _wait(run, is_quiet=answer.is_quiet)
    except KeyboardInterrupt:
        end_at_next_interrupt()
        cancel_run(run)
        show(run, answer)
        raise
    show(run, answer)
    if any(state not in (JobState.DONE, JobState.SKIPPED) for state in run.counts()):
        raise typer.Exit(1)


def _wait(run: Run, *, is_quiet: bool) -> None:
    """In a terminal, the run shows its progress itself; elsewhere a line tells it now and then."""
    pace, started = Pace(), run.status.started
    if not is_quiet and not is_live(Console(stderr=True)):
        while not run.wait_for_master(REFRESH_SECONDS):
            seconds = time.time() - started
            if pace.is_due(seconds):
                say(escape(progress_line(run.counts(), seconds)))
    run.wait(progress=False if is_quiet else None)
