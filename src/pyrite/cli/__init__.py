"""The command line. `app` has the commands; `main` is the program `pyrite`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from pyrite.cli.app import app
from pyrite.cli.completing import whole_words
from pyrite.interrupts import INTERRUPTED

__all__ = ["app", "main"]


def main() -> None:
    """Runs a command and ends the process. After Ctrl-C it does not wait for any thread: one may be
    starting Spark, or be in a function of the user's that does not return."""
    try:
        with whole_words(os.environ):
            app()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            with suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(INTERRUPTED)
        raise
