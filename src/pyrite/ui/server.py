"""UiServer: serves the page on a thread of its own, until it is closed."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Final
from urllib.parse import urlencode

import uvicorn

from pyrite.closing import Closing
from pyrite.errors import PyriteError
from pyrite.forks import repair_after_fork
from pyrite.ui.app import make_app
from pyrite.ui.security import guard_for, is_any
from pyrite.ui.sources.sources import Sources

STREAMS_SECONDS: Final = 1
"""The open streams have so long to send what is new, when the server stops."""
CLOSING_SECONDS: Final = 2.0
STARTING_SECONDS: Final = 10.0


class UiServer(Closing):
    """Port 0 is any free one. On a host that is not loopback, there is a token. The sources are
    closed with it."""

    def __init__(
        self,
        sources: Sources,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        is_read_only: bool = False,
    ) -> None:
        self._socket = _bound(host, port)
        self.host, self.port = host, self._socket.getsockname()[1]
        self._is_closed = False
        try:
            self._guard = guard_for(host, self.port, token, is_read_only=is_read_only)
        except BaseException:
            self._socket.close()
            raise
        self._sources = sources
        self._has_started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._server: uvicorn.Server | None = None
        self._thread = threading.Thread(target=self._run, name="pyrite-ui", daemon=True)
        self._thread.start()
        repair_after_fork(self)
        if not self._has_started.wait(STARTING_SECONDS):
            self.close()
            raise PyriteError("the server of the page did not start")

    @property
    def url(self) -> str:
        """What a person opens. It has the token, if there is one."""
        name = "127.0.0.1" if is_any(self.host) else self.host
        return self._url_at(name)

    def _url_at(self, name: str) -> str:
        token = self._guard.token
        query = "" if token is None else f"?{urlencode({'token': token})}"
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}/{query}"

    @property
    def urls(self) -> list[str]:
        """Where it may be opened: on this machine and, if it listens at all addresses, by the name
        of the machine."""
        return [self.url, self._url_at(socket.gethostname())] if is_any(self.host) else [self.url]

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        loop, server, stopping = self._loop, self._server, self._stopping
        if loop is not None and server is not None and stopping is not None:
            server.should_exit = True
            try:
                loop.call_soon_threadsafe(stopping.set)
            except RuntimeError:  # it has ended by itself
                pass
            self._thread.join(CLOSING_SECONDS)
        self._socket.close()
        self._sources.close()

    def after_fork(self) -> None:
        """The page is the parent's. The child must not keep its port in use."""
        self._is_closed = True
        self._socket.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._has_started.set()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._server = uvicorn.Server(
            uvicorn.Config(
                make_app(self._sources, self._guard, self._stopping),
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=STREAMS_SECONDS,
            )
        )
        self._loop.call_soon(self._has_started.set)
        await self._server.serve(sockets=[self._socket])

    def __repr__(self) -> str:
        return f"<page at {self.host}:{self.port}{', closed' if self._is_closed else ''}>"


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PyriteError(
            f"the page cannot be served at {host}:{port}: {reason}; choose another port, or port "
            "0 for any free one"
        ) from error
