"""The commands that look at a run and change nothing: `status`, `log` and `report`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from pyrite.cli.errors import say
from pyrite.cli.showing.answers import JsonOption, answering
from pyrite.cli.workload.arguments import StoreArgument
from pyrite.cli.workload.shown import show
from pyrite.errors import PyriteError
from pyrite.system.private import write_private
from pyrite.workload import Run
from pyrite.workload.views.documents import log_document


class Picture(str, Enum):
    table = "table"
    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"


def status(
    store: StoreArgument,
    format: Annotated[
        Picture,
        typer.Option(help="A table, or the graph of the jobs with a colour for each state."),
    ] = Picture.table,
    all: Annotated[
        bool, typer.Option("--all", help="Show all jobs, even if there are many.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show the state of a run and of its jobs."""
    if json and format is not Picture.table:
        raise typer.BadParameter(f"--json and --format {format.value} cannot be used together")
    with answering(json) as answer:
        found = Run.attach(store)
        if format is Picture.table:
            show(found, answer, everything=all)
        else:
            typer.echo(
                {
                    Picture.mermaid: found.to_mermaid,
                    Picture.dot: found.to_dot,
                    Picture.svg: found.to_svg,
                }[format]()
            )


def log(
    store: StoreArgument,
    job: Annotated[str, typer.Argument(metavar="JOB", help="The id of a job.")],
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Print what the job writes, until the job has ended."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show the output of a job, and its traceback if it failed."""
    with answering(json) as answer:
        found = Run.attach(store)
        if follow:
            _follow(found, job, is_shown=not json)
        document = log_document(found, job)
        answer.give(document)
        if not json and not follow:
            typer.echo(document["log"], nl=False)
        if not json:
            error = f"{document['state']}: {document['error']}\n" if document["error"] else ""
            typer.echo(document["traceback"] or error, nl=False, err=True)


def _follow(run: Run, job: str, *, is_shown: bool) -> None:
    attempt = 0
    for piece in run.follow(job):
        if not is_shown:
            continue
        if attempt and piece.attempt != attempt:
            say(f"[dim]attempt {piece.attempt}:[/]")
        attempt = piece.attempt
        typer.echo(piece.text, nl=False)


def report(
    store: StoreArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The file to write. Default: report.html in the store folder."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write a report of a run: one HTML file with a summary, the graph, a time chart, the table of
    the jobs, and the outputs of the jobs that failed."""
    with answering(json) as answer:
        found = Run.attach(store)
        path = output if output is not None else found.store / "report.html"
        data = found.to_html().encode("utf-8", "backslashreplace")
        try:
            if output is None:
                write_private(path, data)
            else:
                path.write_bytes(data)
        except OSError as error:
            raise PyriteError(
                f"cannot write '{path}': {error.strerror}; give another file with -o"
            ) from None
        if json:
            answer.give({"file": str(path), "bytes": len(data)})
        else:
            typer.echo(str(path))
