"""Avoids a delay of 40 ms in each task: makes a Python worker acknowledge the JVM's data at once.

Over TCP, the JVM sends the start of its data as a small segment, and waits for the acknowledgement
before it sends the rest (Nagle's algorithm). The kernel on the worker's side delays that
acknowledgement by 40 ms, to send it together with other data (delayed ACK). Unix domain sockets
(`spark.python.unix.domain.socket.enabled`) do not have this problem, but sessions that the user
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
    """Yields the same batches. Before each read it turns delayed ACK off on the sockets to the
    JVM."""
    global _sockets
    if _sockets is None:
        _sockets = _tcp_sockets()
    return _reading(batches, _sockets) if _sockets else batches


_sockets: list[socket.socket] | None = None
"""Duplicates of the sockets to the JVM. They are looked up when the first task begins: a worker has
one connection for its whole life. Sockets that users' functions open later are left alone."""


def _reading(batches: Iterator[T], sockets: list[socket.socket]) -> Iterator[T]:
    while True:
        for each in sockets:  # the kernel resets this option after a while
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _tcp_sockets() -> list[socket.socket]:
    """Duplicates of the TCP sockets between this process and the JVM."""
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
        except OSError:  # the socket was closed meanwhile, or is not connected
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
