"""Shows how far a job is while a command waits for it: in a terminal a picture that is drawn again
four times a second, elsewhere a line now and then. All of it goes to standard error."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.markup import escape

from pyrite.cli.errors import say
from pyrite.cli.showing.pictures import line_of, picture_of
from pyrite.job import Execution
from pyrite.watching.observing import view_of
from pyrite.watching.rates import Rates

QUIET_SECONDS: Final = 1.0
"""Nothing is shown of a job that ends before."""
REFRESH_SECONDS: Final = 0.25
FIRST_LINE_SECONDS: Final = 10.0
LONGEST_PAUSE_SECONDS: Final = 600.0
SPARK_SECONDS: Final = 15.0
"""Spark may take so long to start before a line says that it is waited for."""


class Watch:
    """Use it as `with Watch(execution) as watch`, and call `watch.look()` about every
    REFRESH_SECONDS."""

    def __init__(self, execution: Execution, *, quiet: bool = False) -> None:
        self._execution = execution
        self._quiet = quiet
        self._console = Console(stderr=True)
        self._rates = Rates()
        self._pace = Pace()
        self._live: Live | None = None

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def wait(self) -> None:
        """Until the job has ended. Raises as `execution.result` does."""
        while True:
            try:
                return self._execution.result(REFRESH_SECONDS)
            except TimeoutError:
                self.look()

    def look(self) -> None:
        if self._quiet:
            return
        view = self._rates.added_to(view_of(self._execution))
        if not is_live(self._console):
            is_patient = view.state == "starting" and view.seconds < SPARK_SECONDS
            if not is_patient and self._pace.is_due(view.seconds):
                hint = "; press Ctrl-C to give up" if view.state == "starting" else ""
                say(escape(line_of(view) + hint))
            return
        if view.seconds < QUIET_SECONDS:
            return
        if self._live is None:
            self._live = Live(
                console=self._console,
                transient=True,
                auto_refresh=False,
                redirect_stdout=sys.stdout.isatty(),  # what a job prints may be for a file
            )
            self._live.start()
        size = self._console.size
        self._live.update(picture_of(view, width=size.width, height=size.height), refresh=True)


class Pace:
    """When a line is due: the first after FIRST_LINE_SECONDS, then after pauses twice as long each
    time.

    >>> pace = Pace()
    >>> [second for second in range(200) if pace.is_due(second)]
    [10, 30, 70, 150]
    """

    def __init__(self) -> None:
        self._next = self._pause = FIRST_LINE_SECONDS

    def is_due(self, seconds: float) -> bool:
        if seconds < self._next:
            return False
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        self._next = seconds + self._pause
        return True


def is_live(console: Console) -> bool:
    """Whether what is printed there can be drawn again. FORCE_COLOR alone does not make a terminal
    of a file."""
    return console.is_interactive and not console.is_dumb_terminal and console.file.isatty()
