"""An HTTP server that answers each request after the same time. It is a process of its own and does
as little as possible, so that the clients are what is measured."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
END = b"\r\n\r\n"


@contextmanager
def slow_server(seconds: float) -> Iterator[str]:
    """The URL of a server that answers `ok` after so many seconds."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(there, seconds))
    process.start()
    yield here.recv()
    here.send(None)
    process.join()


def _run(parent: Connection, seconds: float) -> None:
    asyncio.run(_serve(parent, seconds))


async def _serve(parent: Connection, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Answers(seconds), "127.0.0.1", 0)
    parent.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    async with server:
        await loop.run_in_executor(None, parent.recv)


class _Answers(asyncio.Protocol):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._came = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *requests, self._came = (self._came + data).split(END)
        loop = asyncio.get_running_loop()
        for _ in requests:
            loop.call_later(self._seconds, self._transport.write, ANSWER)
