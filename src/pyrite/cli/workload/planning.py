"""The command `plan`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pyrite.cli.showing.answers import JsonOption, answering
from pyrite.cli.workload.arguments import (
    FileArgument,
    FromOption,
    OnlyOption,
    StoreOption,
    ToOption,
)
from pyrite.cli.workload.files import read

_OF_A_PLAN = ("store", "pools", "rerun")


def plan(
    file: FileArgument,
    store: StoreOption = None,
    why: Annotated[
        str | None, typer.Option(metavar="JOB", help="Say only why this job would run or not.")
    ] = None,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="As if also the jobs that are up to date were to run.")
    ] = False,
    only: OnlyOption = None,
    from_: FromOption = None,
    to: ToOption = None,
    json: JsonOption = False,
) -> None:
    """Show which jobs of a file would run, and why. Nothing runs, and nothing is written."""
    with answering(json) as answer:
        written = read(file, store=store, rerun=rerun or None)
        part: dict[str, Any] = {"only": only or None, "from_": from_ or None, "to": to or None}
        options = {name: written.options[name] for name in _OF_A_PLAN if name in written.options}
        found = written.workload.plan(schedule=written.schedule, **options, **part)
        sentence = found.why(why) if why is not None else ""
        rows = [row for row in found.table() if why is None or row["job"] == why]
        answer.give({"store": str(options["store"]), "counts": found.counts(), "jobs": rows})
        if not json:
            typer.echo(sentence or str(found))
