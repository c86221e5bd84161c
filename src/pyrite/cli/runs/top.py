"""The command `top`."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from pyrite.cli.durable import Durable, DurableFile, place_of
from pyrite.cli.runs.options import RunsOption
from pyrite.cli.runs.snapshot import document_of, picture_of, taken
from pyrite.cli.showing.answers import JsonOption, answering
from pyrite.cli.showing.watch import is_live

if TYPE_CHECKING:
    from pyrite.ui.sources.sources import Sources

LOOK_SECONDS: Final = 1.0
ENDING_KEYS: Final = {"q", "Q", "\x04"}


def top(
    durable: Durable = None,
    durable_file: DurableFile = None,
    workload: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="STORE",
            help="The store of a workload. May be given several times.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    runs: RunsOption = None,
    once: Annotated[
        bool, typer.Option("--once", help="Print what runs now, and end. So without a terminal.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Watch what runs: jobs and workloads, how fast they are, and what they wait for, until q.

    Those that commands have started are found by themselves.
    """
    with answering(json) as answer:
        from pyrite.ui.opening import sources_of

        is_given = durable is not None or durable_file is not None
        places = [place_of(durable, durable_file)] if is_given else []
        with sources_of(runs, workloads=workload or (), durable=places) as sources:
            if once or json or not is_live(answer.console):
                rows = taken(sources)
                answer.give(document_of(rows))
                answer.console.print(picture_of(rows, width=answer.console.width))
            else:
                _watch(sources, answer.console)


def _watch(sources: Sources, console: Console) -> None:
    with (
        _keys() as pressed,
        Live(console=console, screen=True, auto_refresh=False, redirect_stderr=False) as live,
    ):
        try:
            while True:
                rows, area = taken(sources), console.size
                hint = Text(f"{time.strftime('%H:%M:%S')}; press q to end", style="dim")
                picture = picture_of(rows, width=area.width, height=area.height - 1)
                live.update(Group(picture, hint), refresh=True)
                if ENDING_KEYS & set(pressed(LOOK_SECONDS)):
                    return
        except KeyboardInterrupt:
            return  # it is the usual way to end it


class _Keys:
    """The keys that were pressed, after some seconds or as soon as there is one."""

    def __init__(self, *, has_keyboard: bool) -> None:
        self._has_keyboard = has_keyboard

    def __call__(self, seconds: float) -> str:
        if not self._has_keyboard:
            time.sleep(seconds)
            return ""
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        return os.read(sys.stdin.fileno(), 64).decode(errors="replace") if ready else ""


@contextmanager
def _keys() -> Iterator[_Keys]:
    """Keys without Enter, until the end of the block."""
    if not sys.stdin.isatty():
        yield _Keys(has_keyboard=False)
        return
    import termios
    import tty

    number = sys.stdin.fileno()
    before = termios.tcgetattr(number)
    tty.setcbreak(number)
    try:
        yield _Keys(has_keyboard=True)
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)
