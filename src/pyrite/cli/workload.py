"""The commands for workloads: `pyrite workload run`, `status`, `log`, `resume`, `cancel` and
`prune`."""

from __future__ import annotations

import shlex
import sys
import time
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pyrite.cli.errors import end_at_next_interrupt, reporting_errors
from pyrite.cli.find import find_in, find_module
from pyrite.cli.progress import duration
from pyrite.errors import PyriteError
from pyrite.functions import shorten
from pyrite.workload import JobState, Run, Schedule, Workload
from pyrite.workload.progress import STYLES
from pyrite.workload.yaml_file import Written, read_yaml

app = typer.Typer(
    help="Run a DAG of jobs on workers; inspect, cancel and resume such runs.", no_args_is_help=True
)

StoreArgument = Annotated[
    Path, typer.Argument(metavar="STORE", help="The store folder of the run.")
]

ROWS_SHOWN = 100


class Kind(str, Enum):
    persistent = "persistent"
    transient = "transient"


class OnErrorOption(str, Enum):
    go_on = "continue"
    abridge = "abridge"
    stop = "stop"


class Picture(str, Enum):
    table = "table"
    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"


@app.command()
def run(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A .yaml file, or a Python module or file that defines `workload`."
        ),
    ],
    workers: Annotated[
        int | None, typer.Option(help="The number of workers. Default: one per core.", min=1)
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            help="The folder for results, logs and states. Default: the name of FILE with .run."
        ),
    ] = None,
    kind: Annotated[Kind | None, typer.Option(help="The kind of workers.")] = None,
    on_error: Annotated[
        OnErrorOption | None, typer.Option(help="What happens to the other jobs when a job fails.")
    ] = None,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Also run the jobs that are up to date.")
    ] = False,
) -> None:
    """Run the jobs of a file until all have ended. Jobs that are up to date are skipped."""
    console = Console()
    with reporting_errors():
        written = read(file)
        options: dict[str, Any] = dict(written.options)
        options.setdefault("store", f"{Path(file.partition(':')[0]).stem}.run")
        chosen = {
            "workers": workers,
            "store": store,
            "kind": kind and kind.value,
            "on_error": on_error and on_error.value,
        }
        options.update({name: value for name, value in chosen.items() if value is not None})
        if rerun:
            options["rerun"] = True
        see_through(written.workload.run(written.schedule, **options), console)


@app.command()
def resume(
    store: StoreArgument,
    workers: Annotated[
        int | None, typer.Option(help="The number of workers. Default: as before.", min=1)
    ] = None,
) -> None:
    """Continue a run that was cancelled, broken or killed."""
    with reporting_errors():
        see_through(
            Run.resume(store, **({"workers": workers} if workers is not None else {})), Console()
        )


@app.command()
def status(
    store: StoreArgument,
    format: Annotated[
        Picture,
        typer.Option(help="A table, or the graph of the jobs with a colour for each state."),
    ] = Picture.table,
    all: Annotated[
        bool, typer.Option("--all", help="Show all jobs, even if there are many.")
    ] = False,
) -> None:
    """Show the state of a run and of its jobs."""
    with reporting_errors():
        found = Run.attach(store)
        if format is Picture.table:
            show(found, Console(), everything=all)
        else:
            typer.echo(
                {
                    Picture.mermaid: found.to_mermaid,
                    Picture.dot: found.to_dot,
                    Picture.svg: found.to_svg,
                }[format]()
            )


@app.command()
def log(
    store: StoreArgument,
    job: Annotated[str, typer.Argument(metavar="JOB", help="The id of a job.")],
) -> None:
    """Show the output of a job, and its traceback if it failed."""
    with reporting_errors():
        found = Run.attach(store)
        typer.echo(found.log(job), nl=False)
        traceback = found.traceback(job)
        row = next(row for row in found.table() if row["job"] == job)
        typer.echo(
            traceback or (f"{row['state']}: {row['error']}\n" if row["error"] else ""),
            nl=False,
            err=True,
        )


@app.command()
def cancel(store: StoreArgument) -> None:
    """Cancel a run. The results of finished jobs stay."""
    with reporting_errors():
        found = Run.attach(store)
        if found.has_ended:
            raise PyriteError(f"the run in '{store}' has already ended")
        _cancel(found)
        show(found, Console(), everything=False)


@app.command()
def prune(
    store: StoreArgument,
    keep: Annotated[
        int,
        typer.Option(help="The number of latest results of each job that stay anyway.", min=0),
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
) -> None:
    """Remove the results that the last run in a store does not use, with their files."""
    with reporting_errors():
        pruned = Run.prune(store, keep=keep, dry_run=dry_run)
        what = "would remove" if dry_run else "removed"
        results = f"{pruned.results} result{'' if pruned.results == 1 else 's'}"
        typer.echo(f"{what} {results}, {pruned.bytes} bytes")


def read(file: str) -> Written:
    if file.endswith((".yaml", ".yml")):
        path = Path(file)
        sys.path.insert(
            0, str(path.parent.resolve())
        )  # the file may name functions of modules in its folder
        return read_yaml(path)
    where, _, name = file.partition(":")
    module = find_module(where)
    workload = find_in(module, where, name or "workload", Workload)
    return Written(workload, _schedule_of(module, where))


def _schedule_of(module: ModuleType, where: str) -> Schedule | None:
    """The Schedule that a module defines as `schedule`. A function or a module of this name is
    ignored."""
    found = getattr(module, "schedule", None)
    if found is None or isinstance(found, Schedule):
        return found
    if callable(found) or isinstance(found, ModuleType):
        return None
    raise PyriteError(
        f"'schedule' in '{where}' must be a Schedule, as in Schedule([('a', 'b')]); it is "
        f"{shorten(found)}"
    )


def see_through(run: Run, console: Console) -> None:
    """Waits for a run and shows its jobs. Exits with code 1 if a job failed. On Ctrl-C, cancels the
    run first."""
    try:
        run.wait()
    except KeyboardInterrupt:
        end_at_next_interrupt()
        _cancel(run)
        show(run, console, everything=False)
        raise
    show(run, console, everything=False)
    if any(state not in (JobState.DONE, JobState.SKIPPED) for state in run.counts()):
        raise typer.Exit(1)


def _cancel(run: Run) -> None:
    try:
        run.cancel()
    except TimeoutError as error:
        raise PyriteError(str(error)) from None


def show(run: Run, console: Console, *, everything: bool) -> None:
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
        console.print(jobs_table(shown))
    if len(shown) < len(rows):
        command = f"pyrite workload status {_quoted(str(run.store))} --all"
        others = f"{len(rows) - len(shown)} other jobs are not shown; to see all, run: {command}"
        console.print(others, style="dim", markup=False, soft_wrap=True)
    counts = run.counts()
    words = ", ".join(
        f"[{STYLES.get(state, 'dim')}]{counts[state]} {state.value.lower()}[/]"
        for state in JobState
        if state in counts
    )
    length, longest = run.lengths()
    status = run.status
    phase = status.phase if status.has_ended or not run.has_ended else "killed"
    seconds = (status.ended or time.time()) - status.started
    console.print(f"{phase} after {duration(seconds)}: {words}")
    console.print(
        f"time from the first start to the last end: {duration(length)}; critical path: "
        f"{duration(longest)}",
        style="dim",
    )
    if status.problem:
        console.print(f"[red]{escape(status.problem)}[/]", soft_wrap=True)
    if run.failed():
        job = _quoted(run.failed()[0]["job"])
        hint = (
            f"to see why a job failed, run: pyrite workload log {_quoted(str(run.store))} -- {job}"
        )
        console.print(hint, style="dim", markup=False, soft_wrap=True)
    if phase in ("killed", "broken", "cancelled"):
        console.print(
            f"to continue, run: pyrite workload resume {_quoted(str(run.store))}",
            style="dim",
            markup=False,
            soft_wrap=True,
        )


def _quoted(text: str) -> str:
    return shlex.quote(text)


def jobs_table(rows: list[dict[str, Any]]) -> Table:
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
            f"[{STYLES.get(state, 'dim')}]{state.value}[/]",
            str(row["attempt"] or ""),
            row["worker"] or "",
            "" if seconds is None else f"{seconds:.3f}",
            escape(row["error"] or ""),
        )
    return table
