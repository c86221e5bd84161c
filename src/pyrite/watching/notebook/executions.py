"""An execution in a notebook."""

from __future__ import annotations

import threading
from functools import partial

from pyrite.job import Execution
from pyrite.watching.notebook.live import show
from pyrite.watching.notebook.runs import run_html
from pyrite.watching.observing import view_of
from pyrite.watching.rates import Rates


def execution_html(execution: Execution) -> str:
    """The execution as it is now."""
    return run_html(Rates().added_to(view_of(execution)))


def show_execution(execution: Execution) -> None:
    """Shows it, and keeps it up to date until it has ended."""
    rates, ended = Rates(), threading.Event()
    execution.add_done_callback(lambda _: ended.set())
    show(
        partial(repr, execution),
        lambda: run_html(rates.added_to(view_of(execution))),
        ended.wait,
    )
