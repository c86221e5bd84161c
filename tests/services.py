"""A client for tests in all modes. It notes in a file who made and closed it."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp


def noted_session(
    notes: Path,
) -> Callable[[], AbstractAsyncContextManager[aiohttp.ClientSession]]:
    """A service: an HTTP session."""

    @asynccontextmanager
    async def session() -> AsyncIterator[aiohttp.ClientSession]:
        async with aiohttp.ClientSession(raise_for_status=True) as made:
            _note(notes, "made")
            try:
                yield made
            finally:
                _note(notes, "closed")

    return session


def _note(notes: Path, what: str) -> None:
    with notes.open("a") as file:
        file.write(f"{what} {os.getpid()}\n")


def noted(notes: Path) -> Counter[str]:
    """How often a client was made and closed, by process: `made 123`."""
    return Counter(notes.read_text().splitlines())


async def answer_of(session: aiohttp.ClientSession, url: str) -> Any:
    async with session.get(url) as answer:
        return await answer.json()


class CannotCommit:
    """A client whose transaction cannot be committed."""

    def __enter__(self) -> CannotCommit:
        return self

    def __exit__(self, *error: object) -> None:
        raise OSError("the commit failed")


def same(client: object, item: Any) -> Any:
    return item


def join_threads(name: str) -> None:
    """Waits until the threads whose names begin like this have ended."""
    for thread in threading.enumerate():
        if thread.name.startswith(name):
            thread.join(20)
