"""The commands: `demo`, `run`, `show`, `version`, those of clusters, and those of workloads."""

from __future__ import annotations

import logging
import time
from enum import Enum
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler

from pyrite import __version__
from pyrite.cli import cluster as cluster_commands
from pyrite.cli import demo as demo_command
from pyrite.cli.errors import reporting_errors
from pyrite.cli.find import find_dag
from pyrite.cli.progress import run_to_end, show_outcome
from pyrite.cli.workload import app as workload_app
from pyrite.instance import instance
from pyrite.job import JobConfig

app = typer.Typer(
    help="Write a DAG of Python processors once; run it anywhere.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(workload_app, name="workload")
app.command()(cluster_commands.cluster)
app.command()(cluster_commands.member)

DagArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:DAG", help="A module, or a .py file, and the name of a DAG in it."
    ),
]


class Format(str, Enum):
    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"
    text = "text"


@app.callback()
def options(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log what the engine does.")
    ] = False,
) -> None:
    handler = RichHandler(console=Console(stderr=True), show_path=False)
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING,
        format="%(message)s",
        handlers=[handler],
    )


@app.command()
def demo() -> None:
    """Count the words of a text that comes with Pyrite, with the DAG drawn."""
    with reporting_errors():
        demo_command.run(Console())


@app.command()
def run(
    dag: DagArgument,
    light: Annotated[
        bool, typer.Option("--light", help="Run as a light job, in this process.")
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(help="Spark's master, or sc:// for Spark Connect; default: this machine."),
    ] = None,
    members: Annotated[
        int | None,
        typer.Option(help="How many tasks side by side; default: as many as Spark runs.", min=1),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Size of the cooperative pool of a light job.", min=1)
    ] = None,
) -> None:
    """Run a DAG to its end, and show what it did."""
    console = Console()
    with reporting_errors():
        found = find_dag(dag)
        with instance(spark_master=master, cooperative_threads=threads) as pyr:
            job = (
                pyr.new_light_job(found)
                if light
                else pyr.new_job(found, JobConfig(name=dag, members=members))
            )
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
            {
                Format.mermaid: found.to_mermaid,
                Format.dot: found.to_dot,
                Format.svg: found.to_svg,
            }.get(format, found.to_text)()
        )


@app.command()
def version() -> None:
    """Say which version this is."""
    typer.echo(__version__)
