"""The options that the commands for runs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunsOption = Annotated[
    Path | None,
    typer.Option(
        "--runs",
        metavar="FOLDER",
        help="The folder in which runs are recorded. Default: that of PYRITE_RUNS, or the one of "
        "this user.",
        file_okay=False,
    ),
]
