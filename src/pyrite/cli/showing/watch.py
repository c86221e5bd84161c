"""Shows how far a job is while a command waits for it: in a terminal a picture that is drawn again
four times a second, elsewhere a line now and then. All of it goes to standard error."""

from __future__ import annotations

import sys
import time
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
from pyrite.watching.views import RunView

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
        self._next_view = 0.0

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
        """Shows how far the job is, if that is due. A view of a large job takes time from the job,
        so none is taken for nothing, and at most a tenth of the time goes to it."""
        seconds = time.time() - self._execution.submitted
        is_terminal = is_live(self._console)
        next_seconds = QUIET_SECONDS if is_terminal else self._pace.next_seconds
        if self._quiet or seconds < next_seconds or time.monotonic() < self._next_view:
            return
        began = time.monotonic()
        view = self._rates.added_to(view_of(self._execution))
        self._next_view = time.monotonic() + 9 * (time.monotonic() - began)
        if is_terminal:
            self._draw(view)
            return
        is_patient = view.state == "starting" and view.seconds < SPARK_SECONDS
        if not is_patient and self._pace.is_due(seconds):
            hint = "; press Ctrl-C to give up" if view.state == "starting" else ""
            say(escape(line_of(view) + hint))

    def _draw(self, view: RunView) -> None:
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
        self.next_seconds = self._pause = FIRST_LINE_SECONDS

    def is_due(self, seconds: float) -> bool:
        if seconds < self.next_seconds:
            return False
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        self.next_seconds = seconds + self._pause
        return True


def is_live(console: Console) -> bool:
    """Whether what is printed there can be drawn again. FORCE_COLOR alone does not make a terminal
    of a file."""
    return console.is_interactive and not console.is_dumb_terminal and console.file.isatty()
