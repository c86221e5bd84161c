"""Ctrl-C while the program `pyrite` starts: one line, and the exit code of an interrupted program.

The imports of a command take a good part of a second. A KeyboardInterrupt in the middle of one
would print a traceback. So this module is imported first of all. It does nothing in other programs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

INTERRUPTED = 130  # the exit code after Ctrl-C, as in a shell


def raise_interrupts() -> None:
    """From now on, Ctrl-C raises KeyboardInterrupt, as in any Python program."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: object) -> None:
    os.write(2, b"cancelled\n")
    os._exit(INTERRUPTED)


def _is_the_program() -> bool:
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    is_module = name == "-m" and "pyrite" in sys.orig_argv
    return is_module or name in ("pyrite", "pyrite.exe")


if (
    _is_the_program()
    and threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, _end)
