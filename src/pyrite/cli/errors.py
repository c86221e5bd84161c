"""What all commands do about errors and Ctrl-C: one message, and an exit code."""

from __future__ import annotations

import traceback
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

from pyrite.errors import JobCancelled, PyriteError


class reporting_errors:
    """Turns an error of Pyrite's into one message and exit code 1, and Ctrl-C into exit code
    130."""

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
            if cause is not None and not isinstance(cause, (PyriteError, OSError)):
                console.print(escape(_users_traceback(cause)), style="dim", soft_wrap=True, end="")
            raise typer.Exit(1) from None


def _users_traceback(error: BaseException) -> str:
    """The traceback of a user's error, without the frames of this package that called it."""
    here = str(Path(__file__).parents[1])
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if not f.filename.startswith((here, "<pyrite"))
    ]
    lines = (
        ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    )
    return "".join([*lines, *traceback.format_exception_only(error)])
