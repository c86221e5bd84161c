"""The command `prune`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from pyrite.cli.showing.answers import JsonOption, answering
from pyrite.cli.workload.arguments import StoreArgument
from pyrite.workload import Run


def prune(
    store: StoreArgument,
    keep: Annotated[
        int,
        typer.Option(help="The number of latest results of each job that stay anyway.", min=0),
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Remove the results that the last run in a store does not use, with their files."""
    with answering(json) as answer:
        pruned = Run.prune(store, keep=keep, dry_run=dry_run)
        answer.give({**asdict(pruned), "dry_run": dry_run})
        if not json:
            what = "would remove" if dry_run else "removed"
            results = f"{pruned.results} result{'' if pruned.results == 1 else 's'}"
            typer.echo(f"{what} {results}, {pruned.bytes} bytes")
