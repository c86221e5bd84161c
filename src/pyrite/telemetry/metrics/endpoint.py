"""The endpoint that Prometheus scrapes: /metrics of this process."""

from __future__ import annotations

import errno
import logging
import os
import selectors
import socket
import threading
from typing import TYPE_CHECKING, Final

from pyrite.closing import Closing
from pyrite.errors import PyriteError
from pyrite.forks import repair_after_fork
from pyrite.functions import message_of, shorten
from pyrite.telemetry.libraries import need
from pyrite.telemetry.metrics.observer import COUNTING

if TYPE_CHECKING:
    from prometheus_client.exposition import ThreadingWSGIServer

logger = logging.getLogger("pyrite.telemetry")

PORTS_TRIED: Final = 20


def prometheus(port: int = 9464, host: str = "127.0.0.1") -> Endpoint:
    """Counts all runs of this process from now on, and serves the metrics at
    `http://host:port/metrics`, until the endpoint is closed. Port 0 is any free port.

    Set `PYRITE_PROMETHEUS=9464`, or `PYRITE_PROMETHEUS=0.0.0.0:9464`, to have an endpoint as long
    as any instance or client of the process is open. The metrics have a label `job` of their own,
    so scrape them with `honor_labels: true`.

    >>> import pyrite, urllib.request
    >>> with pyrite.telemetry.prometheus(port=0) as endpoint:
    ...     text = urllib.request.urlopen(endpoint.url).read()
    >>> b"pyrite_vertex_received_total" in text
    True
    """
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 65536:
        raise PyriteError(f"the port of an endpoint must be 0 to 65535; got {shorten(port)}")
    need("prometheus_client", "prometheus-client", "telemetry.prometheus()")
    return Endpoint(port, host)


def endpoint_from(value: str) -> Endpoint:
    """The endpoint that `PYRITE_PROMETHEUS=[host:]port` asks for. If the port is taken, by another
    process with the same variable, the next free one is used."""
    host, _, text = value.rpartition(":")
    if not text.isdecimal():
        raise PyriteError(f"it must be a port, or host:port; got {shorten(value)}")
    host = host.strip("[]") or "127.0.0.1"
    port = int(text)
    for other in range(port, min(port + PORTS_TRIED, 65536)):
        try:
            endpoint = prometheus(other, host)
        except PyriteError as error:
            if not _is_taken(error):
                raise
            continue
        if other != port:
            logger.warning(
                "PYRITE_PROMETHEUS: port %d is taken, so the metrics of process %d are at %s",
                port,
                os.getpid(),
                endpoint.url,
            )
        return endpoint
    raise PyriteError(f"no port from {port} to {port + PORTS_TRIED - 1} is free")


def _is_taken(error: PyriteError) -> bool:
    return isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE


class Endpoint(Closing):
    """Made by `pyrite.telemetry.prometheus()`."""

    def __init__(self, port: int, host: str) -> None:
        from pyrite.telemetry.metrics.serving import server_at

        try:
            self._server: ThreadingWSGIServer = server_at(host, port)
        except OSError as error:
            raise PyriteError(
                f"cannot serve metrics at {host}:{port}: {message_of(error)}; choose another port"
            ) from error
        self.host = host
        self.port: int = self._server.server_address[1]
        self._woken, self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="pyrite-prometheus", daemon=True)
        self._closed = self.is_gone = False
        COUNTING.use(_nothing)
        self._thread.start()
        repair_after_fork(self)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"

    def close(self) -> None:
        """Stops serving. What was counted is kept: a new endpoint goes on from there."""
        if self._closed:
            return
        self._closed = True
        COUNTING.leave(_nothing)
        self._wake.close()
        self._thread.join()

    def after_fork(self) -> None:
        """The port is the parent's. A connection must not wait in a socket that nobody accepts
        from."""
        self.is_gone = self._closed = True
        self._server.socket.close()
        self._wake.close()
        self._woken.close()

    def _serve(self) -> None:
        with self._server, self._woken, selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while all(key.fileobj is not self._woken for key, _ in selector.select()):
                self._server.handle_request()

    def __repr__(self) -> str:
        return f"<endpoint {self.url}{', closed' * self._closed}>"


def _nothing(has_ended: bool) -> None:
    """Nothing is to be done when a run begins or ends: the next scrape sees it."""
