"""The commands `run` and `resume`, which wait until the run has ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
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
from pyrite.errors import PyriteError
from pyrite.watching.journal import runs_folder
from pyrite.watching.journal.known import key_of, remember
from pyrite.workload import JobState, Run
from pyrite.workload.progress import progress_line

UiOption = Annotated[
    bool, typer.Option("--ui", help="Serve a page that shows the run, until it has ended.")
]


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
    ui: UiOption = False,
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
        if ui:
            _check_page()
        part: dict[str, Any] = {"only": only or None, "from_": from_ or None, "to": to or None}
        run = written.workload.run(written.schedule, **written.options, **part)
        _see_through(run, answer, has_page=ui)


def resume(
    store: StoreArgument,
    workers: Annotated[
        int | None, typer.Option(help="The number of workers. Default: as before.", min=1)
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    ui: UiOption = False,
) -> None:
    """Continue a run that was cancelled, broken or killed."""
    with answering(json, quiet=quiet) as answer:
        if ui:
            _check_page()
        changes = {"workers": workers} if workers is not None else {}
        _see_through(Run.resume(store, **changes), answer, has_page=ui)


def _see_through(run: Run, answer: Answer, *, has_page: bool) -> None:
    """Waits for a run and shows its jobs. Exits with code 1 if a job failed. On Ctrl-C, cancels the
    run first."""
    remember(runs_folder(), "workload", str(run.store))
    try:
        with _page_of(run) if has_page else nullcontext():
            _wait(run, is_quiet=answer.is_quiet)
    except KeyboardInterrupt:
        end_at_next_interrupt()
        cancel_run(run)
        show(run, answer)
        raise
    show(run, answer)
    if any(state not in (JobState.DONE, JobState.SKIPPED) for state in run.counts()):
        raise typer.Exit(1)


def _check_page() -> None:
    """Before the run is started."""
    from pyrite.ui.opening import check_installed

    check_installed()


@contextmanager
def _page_of(run: Run) -> Iterator[None]:
    """A page that shows the run, until the run has ended. The run has begun, so it goes on if there
    can be no page."""
    from pyrite.ui.opening import serve, sources_of

    with ExitStack() as serving:
        try:
            server = serving.enter_context(serve(sources_of(workloads=[run.store])))
        except (PyriteError, OSError) as error:
            say(escape(f"there is no page of the run: {error}; the run goes on"))
        else:
            address = f"{server.url}workloads/{key_of('workload', str(run.store))}"
            say(escape(f"watch the run at {address}"))
        yield


def _wait(run: Run, *, is_quiet: bool) -> None:
    """In a terminal, the run shows its progress itself; elsewhere a line tells it now and then."""
    pace, started = Pace(), run.status.started
    if not is_quiet and not is_live(Console(stderr=True)):
        while not run.wait_for_master(REFRESH_SECONDS):
            seconds = time.time() - started
            if pace.is_due(seconds):
                say(escape(progress_line(run.counts(), seconds)))
    run.wait(progress=False if is_quiet else None)
