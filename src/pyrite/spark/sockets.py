"""Takes the 40 ms out of each task: a Python worker acknowledges what the JVM sends at once.

Where the two talk by TCP, the JVM sends the head of its data as a small segment and holds the rest
back until that is acknowledged (Nagle's algorithm); the kernel on the worker's side delays the
acknowledgement by 40 ms, in the hope of data to send it with. Unix domain sockets
(`spark.python.unix.domain.socket.enabled`) do not have this problem; a session that the user
started may not use them.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")


def acknowledged_at_once(batches: Iterator[T]) -> Iterator[T]:
    """The same batches. Before each is read, the sockets of this process are told not to wait."""
    global _sockets
    if _sockets is None:
        _sockets = _tcp_sockets()
    return _reading(batches, _sockets) if _sockets else batches


_sockets: list[socket.socket] | None = None
"""Found when the first task begins, and kept: a worker has one connection to the JVM for its whole
life, and sockets that users' functions open later are none of ours."""


def _reading(batches: Iterator[T], sockets: list[socket.socket]) -> Iterator[T]:
    while True:
        for each in sockets:  # the kernel forgets this setting after a while
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _tcp_sockets() -> list[socket.socket]:
    """Copies of the sockets by which this process talks to the JVM."""
    found: list[socket.socket] = []
    if not hasattr(socket, "TCP_QUICKACK"):  # not on Linux
        return found
    for name in os.listdir("/proc/self/fd"):
        try:
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            copy = socket.socket(fileno=os.dup(int(name)))
            if copy.type == socket.SOCK_STREAM and _is_loopback(copy):
                copy.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                found.append(copy)
            else:
                copy.close()
        except OSError:  # it was closed meanwhile, or is not connected
            continue
    return found


def _is_loopback(connected: socket.socket) -> bool:
    if connected.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    try:
        address = str(connected.getpeername()[0])
    except OSError:
        connected.close()
        raise
    return address.startswith("127.") or address in ("::1", "::ffff:127.0.0.1")
