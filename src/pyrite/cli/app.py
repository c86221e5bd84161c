"""The commands: `demo`, `run`, `show`, `version`; those of clusters, durable jobs and workloads;
`ui`."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from enum import Enum
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler

from pyrite import __version__
from pyrite.cli import cluster as cluster_commands
from pyrite.cli import demo as demo_command
from pyrite.cli import durable as durable_commands
from pyrite.cli import submit as submit_command
from pyrite.cli.errors import reporting_errors
from pyrite.cli.find import DagArgument, find_dag
from pyrite.cli.peers import app as peers_app
from pyrite.cli.progress import opened, run_to_end, show_outcome
from pyrite.cli.runs import cancelling, listing, top
from pyrite.cli.settings import Settings
from pyrite.cli.showing.answers import JsonOption, QuietOption, answering
from pyrite.cli.ui import ui as ui_command
from pyrite.cli.workload import app as workload_app
from pyrite.job import JobConfig
from pyrite.telemetry.logs import VARIABLE as LOG_VARIABLE
from pyrite.telemetry.logs import from_environment as log_from_environment
from pyrite.telemetry.logs import wanted_format

app = typer.Typer(
    help="Write a DAG of Python processors once; run it anywhere.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

app.add_typer(workload_app, name="workload")
app.command()(cluster_commands.cluster)
app.command()(cluster_commands.member)
app.command()(durable_commands.coordinator)
app.add_typer(peers_app, name="peers")
app.command()(submit_command.submit)
app.command()(listing.jobs)
app.command()(cancelling.cancel)
app.command()(top.top)
app.command()(ui_command)


class LogFormat(str, Enum):
    text = "text"
    json = "json"


class Format(str, Enum):
    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"
    text = "text"


@app.callback()
def options(
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Log details, and the whole traceback of an error."),
    ] = False,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(
            help="The format of the log on stderr. With json, each record is one line of JSON, "
            f"with its job and vertex. Default: the variable {LOG_VARIABLE}, or text.",
        ),
    ] = None,
) -> None:
    handler: logging.Handler = RichHandler(console=Console(stderr=True), show_path=False)
    if log_format is not None:
        os.environ[LOG_VARIABLE] = log_format.value  # for the processes that this one starts, too
    if wanted_format() == "json":
        handler = logging.StreamHandler()
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING,
        format="%(message)s",
        handlers=[handler],
    )
    log_from_environment()


@app.command()
def demo(quiet: QuietOption = False) -> None:
    """Draw a DAG that counts words, and run it in this process and on Spark."""
    with answering(False, quiet=quiet) as answer:
        demo_command.run(answer)


@app.command()
def run(
    dag: DagArgument,
    settings: Settings = None,
    light: Annotated[
        bool, typer.Option("--light", help="Run as a light job in this process, without Spark.")
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(
            help="The URL of the Spark master, or sc://... for Spark Connect. Default: local mode."
        ),
    ] = None,
    members: Annotated[
        int | None,
        typer.Option(
            help="The number of tasks that run in parallel. Default: Spark's default parallelism.",
            min=1,
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="The number of threads of a light job. Default: 1.", min=1)
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a DAG until it ends, and show what each vertex did."""
    if light and (master is not None or members is not None):
        raise typer.BadParameter(
            "--master and --members are for jobs on Spark; a light job runs in this process"
        )
    if threads is not None and not light:
        raise typer.BadParameter("--threads is for light jobs; give --light with it")
    with answering(json, quiet=quiet) as answer:
        found = find_dag(dag, settings or ())
        with opened(spark_master=master, cooperative_threads=threads) as pyr:
            config = JobConfig(name=dag, members=members)
            # A light job takes no name from users, but those who watch should know what it is.
            job = (
                replace(pyr.new_light_job(found), config=config)
                if light
                else pyr.new_job(found, config)
            )
            show_outcome(pyr, run_to_end(job, answer), answer)


@app.command()
def show(
    dag: DagArgument,
    settings: Settings = None,
    format: Annotated[
        Format | None, typer.Option(help="The format of the drawing.", show_default="text")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Say in words what runs together and what is exchanged."),
    ] = False,
    preview: Annotated[
        int | None,
        typer.Option(
            help="Run this many items of each source in this process, and show what each vertex "
            "emits. Nothing is written.",
            min=1,
        ),
    ] = None,
) -> None:
    """Draw a DAG."""
    options = {"--preview": preview is not None, "--explain": explain, "--format": format}
    given = [name for name, value in options.items() if value]
    if len(given) > 1:
        raise typer.BadParameter(f"{' and '.join(given)} cannot be given together")
    with reporting_errors():
        found = find_dag(dag, settings or ())
        if preview is not None:
            from pyrite.pipeline import run as running
            from pyrite.pipeline.looking.preview import previewed

            typer.echo(str(previewed(found, preview, running.here)))
            return
        if explain:
            from pyrite.pipeline.explaining import explained

            typer.echo(explained(found))
            return
        typer.echo(
            {
                Format.mermaid: found.to_mermaid,
                Format.dot: found.to_dot,
                Format.svg: found.to_svg,
            }.get(format or Format.text, found.to_text)()
        )


@app.command()
def version() -> None:
    """Print the version of Pyrite."""
    typer.echo(__version__)
