"""The commands, and what they have in common: a DAG named on the command line, one job run to its end, clean errors and Ctrl-C."""

from __future__ import annotations

import logging
import time
import traceback
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape

from pyrite import __version__
from pyrite.cli import demo as demo_command
from pyrite.cli.find import find_dag
from pyrite.cli.progress import run_to_end, show_outcome
from pyrite.errors import JobCancelled, PyriteError
from pyrite.instance import instance
from pyrite.job import JobConfig

app = typer.Typer(
    help="Write a DAG of Python processors once; run it anywhere.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

DagArgument = Annotated[str, typer.Argument(metavar="MODULE:DAG", help="A module, or a .py file, and the name of a DAG in it.")]


class Format(str, Enum):
    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"
    text = "text"


@app.callback()
def options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what the engine does.")] = False,
) -> None:
    handler = RichHandler(console=Console(stderr=True), show_path=False)
    logging.basicConfig(level=logging.DEBUG if verbose else logging.WARNING, format="%(message)s", handlers=[handler])


@app.command()
def demo() -> None:
    """Count the words of a text that comes with Pyrite, with the DAG drawn."""
    with reporting_errors():
        demo_command.run(Console())


@app.command()
def run(
    dag: DagArgument,
    light: Annotated[bool, typer.Option("--light", help="Run as a light job, in this process.")] = False,
    master: Annotated[str | None, typer.Option(help="Spark's master, or sc:// for Spark Connect; default: this machine.")] = None,
    members: Annotated[
        int | None, typer.Option(help="How many tasks side by side; default: as many as Spark runs.", min=1)
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Size of the cooperative pool of a light job.", min=1)] = None,
) -> None:
    """Run a DAG to its end, and show what it did."""
    console = Console()
    with reporting_errors():
        found = find_dag(dag)
        with instance(spark_master=master, cooperative_threads=threads) as pyr:
            job = pyr.new_light_job(found) if light else pyr.new_job(found, JobConfig(name=dag, members=members))
            started = time.perf_counter()
            execution = run_to_end(job, console)
            show_outcome(pyr, execution, time.perf_counter() - started, console)


@app.command()
def show(
    dag: DagArgument,
    format: Annotated[Format, typer.Option(help="How to draw it.")] = Format.text,
) -> None:
    """Draw a DAG."""
    with reporting_errors():
        found = find_dag(dag)
        typer.echo(
            {Format.mermaid: found.to_mermaid, Format.dot: found.to_dot, Format.svg: found.to_svg}.get(format, found.to_text)()
        )


@app.command()
def version() -> None:
    """Say which version this is."""
    typer.echo(__version__)


class reporting_errors:
    """Turns an error of Pyrite's into one message and exit code 1, and Ctrl-C into exit code 130."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, where: object) -> None:
        console = Console(stderr=True)
        if isinstance(error, (KeyboardInterrupt, JobCancelled)):
            console.print("cancelled", style="yellow")
            raise typer.Exit(130) from None
        if isinstance(error, PyriteError):
            console.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
            cause = error.__cause__
            if cause is not None and not isinstance(cause, PyriteError):
                console.print(escape(_users_traceback(cause)), style="dim", soft_wrap=True, end="")
            raise typer.Exit(1) from None


def _users_traceback(error: BaseException) -> str:
    """The traceback of a user's error, without the frames of this package that called it."""
    here = str(Path(__file__).parents[1])
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((here, "<pyrite"))]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    return "".join([*lines, *traceback.format_exception_only(error)])
