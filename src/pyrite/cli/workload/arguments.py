"""The arguments and options that several commands of workloads share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StoreArgument = Annotated[
    Path, typer.Argument(metavar="STORE", help="The store folder of the run.")
]

FileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="A .yaml file, or a Python module or file that defines `workload`."
    ),
]

StoreOption = Annotated[
    Path | None,
    typer.Option(
        help="The folder for results, logs and states. Default: the name of FILE with .run."
    ),
]

_SEVERAL = "May be given several times."

OnlyOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="JOB", help=f"Run this job, and not the others. {_SEVERAL}"),
]

FromOption = Annotated[
    list[str] | None,
    typer.Option(
        "--from", metavar="JOB", help=f"Run this job and all downstream of it. {_SEVERAL}"
    ),
]

ToOption = Annotated[
    list[str] | None,
    typer.Option("--to", metavar="JOB", help=f"Run this job and all upstream of it. {_SEVERAL}"),
]
