"""How every command handles errors and Ctrl-C: one message on standard error, and an exit code."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
import traceback
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

from pyrite.errors import InvalidWorkload, JobCancelled, PyriteError
from pyrite.functions import message_of
from pyrite.interrupts import INTERRUPTED, raise_interrupts
from pyrite.tracebacks import users_traceback

logger = logging.getLogger("pyrite.cli")

LINES_SHOWN = 20
_JAVA_FRAME = re.compile(r"\s*(at [\w.$/@<>-]+\(.*\)|\.\.\. \d+ more)$")
_MORE = "for the whole error, run: pyrite --verbose ..."


def say(text: str, *, end: str = "\n") -> None:
    """Prints a line for the user, with Rich's markup, to standard error."""
    Console(stderr=True).print(text, soft_wrap=True, highlight=False, end=end)


def end_at_next_interrupt() -> None:
    """Called after the first Ctrl-C: prints that the command is being cancelled, and makes the next
    Ctrl-C end the process at once."""
    say("[yellow]cancelling; press Ctrl-C again to end at once[/]")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))


class reporting_errors:
    """Turns an error into a short message and exit code 1, and Ctrl-C into exit code 130.

    If the user's own function raised the error, the user's part of the traceback is shown too. With
    --verbose, the whole traceback is also logged.
    """

    def __enter__(self) -> None:
        raise_interrupts()

    def __exit__(self, kind: object, error: BaseException | None, where: object) -> None:
        if isinstance(error, (KeyboardInterrupt, JobCancelled)):
            say("[yellow]cancelled[/]")
            raise typer.Exit(INTERRUPTED) from None
        if isinstance(error, Exception) and not _is_for_typer(error):
            logger.debug("the whole traceback:", exc_info=error)
            if isinstance(error, PyriteError):
                _report(error)
            else:
                _report_unexpected(error)
            raise typer.Exit(1) from None


def _report(error: PyriteError) -> None:
    """Prints the message of a PyriteError, and the user's part of the traceback of its cause."""
    is_list = isinstance(error, InvalidWorkload)  # of problems, cut where it is too long
    text, was_cut = (str(error), False) if is_list else _shortened(str(error))
    say(f"[bold red]error:[/] {escape(text)}")
    if error.__cause__ is not None:
        say(f"[dim]{escape(users_traceback(error.__cause__))}[/]", end="")
    if was_cut:
        say(f"[dim]{_MORE}[/]")


def _report_unexpected(error: Exception) -> None:
    """Prints any other exception: its type, its message, and the line that raised it."""
    text, _ = _shortened(message_of(error))
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    place = f" ({Path(last.filename).name}, line {last.lineno}, in {last.name})" if last else ""
    say(f"[bold red]error:[/] unexpected {escape(text)}{escape(place)}")
    say(f"[dim]{escape(users_traceback(error))}[/]", end="")
    say(f"[dim]{_MORE}[/]")


def _shortened(text: str) -> tuple[str, bool]:
    """The message without Java stack frames and with at most LINES_SHOWN lines, and whether
    anything was left out."""
    lines = text.splitlines()
    kept = [line for line in lines if not _JAVA_FRAME.match(line)][:LINES_SHOWN]
    return "\n".join(kept), len(kept) < len(lines)


def _is_for_typer(error: Exception) -> bool:
    """Whether Typer handles the exception: an exit code, a usage error, or a closed output pipe, as
    after `| head`."""
    is_own = type(error).__module__.partition(".")[0] in ("typer", "click")
    return is_own or isinstance(error, BrokenPipeError)
