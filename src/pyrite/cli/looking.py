"""What the commands that look at durable jobs share: they read the store, and start nothing."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyrite.durable.store.store import Store


@contextmanager
def existing_store(place: str) -> Iterator[Store]:
    """The store of a place. Raises if a folder has none, and does not make it."""
    from pyrite.durable.store.opening import open_existing_store

    store = open_existing_store(place)
    try:
        yield store
    finally:
        store.close()


def command(name: str, place: str, *arguments: str) -> str:
    """A command for people to copy. The secret of a URL is not in it.

    >>> command("cancel", "/tmp/my jobs", "1a2b")
    "pyrite cancel 1a2b --durable '/tmp/my jobs'"
    """
    from pyrite.durable.store.deployment import hidden

    shown = hidden(place)
    where = ["--durable", shown] if shown == place else ["--durable-file", "FILE"]
    return shlex.join(["pyrite", *name.split(), *arguments, *where])


def moment(seconds: float | None) -> str:
    """When something was: the time, and the day if that is not today.

    >>> moment(None)
    ''
    """
    if seconds is None:
        return ""
    at, now = time.localtime(seconds), time.localtime()
    is_today = at[:3] == now[:3]
    return time.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M", at)
