"""Shows something in a notebook and draws it again in place, about once a second, until it has
ended. Without a notebook it shows the text of it, once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

REFRESH_SECONDS: Final = 1.0
LARGEST_SHARE: Final = 0.1
"""Of the time, at most so much is spent on drawing."""


def show(text: Callable[[], str], html: Callable[[], str], wait: Callable[[float], bool]) -> None:
    """`wait` waits for some seconds and returns whether the thing has ended. Called by IPython."""
    display = import_module("IPython.display").display
    bundle = {"text/plain": text(), "text/html": html()}
    if not in_a_kernel() or wait(0):
        display(bundle, raw=True)
        return
    handle: Any = display(bundle, raw=True, display_id=True)

    def draw(bundle: dict[str, str]) -> None:
        handle.update(bundle, raw=True)

    threading.Thread(
        target=keep_drawn,
        args=(text, html, wait, draw),
        name="notebook display",
        daemon=True,
    ).start()


def keep_drawn(
    text: Callable[[], str],
    html: Callable[[], str],
    wait: Callable[[float], bool],
    draw: Callable[[dict[str, str]], None],
) -> None:
    """Draws it again whenever it looks different, and a last time when it has ended."""
    last, pause, has_ended = "", REFRESH_SECONDS, False
    while not has_ended:
        has_ended = wait(pause)
        began = time.perf_counter()
        now = html()
        if now != last:
            draw({"text/plain": text(), "text/html": now})
            last = now
        pause = max(REFRESH_SECONDS, (time.perf_counter() - began) / LARGEST_SHARE)


def in_a_kernel() -> bool:
    """Whether a front end shows what is displayed, and can replace it. IPython in a terminal
    cannot."""
    shell = import_module("IPython").get_ipython()
    return getattr(shell, "kernel", None) is not None
