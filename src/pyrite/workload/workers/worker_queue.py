"""The worker queue: the orders that a worker has not taken yet. It is a pair of sockets between the
worker and the process that started it, with packets, so that an order is taken as a whole."""

from __future__ import annotations

import os
import socket

from pyrite.workload.system.copies import OwnFile, above_streams
from pyrite.workload.workers.orders import BYTES_MAX


class WorkerQueue:
    """The starter's side. It also has the worker's end, to take orders back."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._theirs = socket.socket(fileno=above_streams(theirs.detach()))
        # The worker ends when our end is closed, so a process that is forked from this one must not
        # keep it open.
        self._ours = OwnFile(above_streams(ours.detach()))
        os.set_blocking(self._ours.file, False)

    @property
    def workers_end(self) -> int:
        """The file from which the worker makes a `Consumer`."""
        return self._theirs.fileno()

    def put(self, order: bytes) -> None:
        os.write(self._ours.file, order)

    def take_back(self) -> bytes | None:
        """Removes and returns an order that the worker has not taken; None if there is none."""
        try:
            return self._theirs.recv(BYTES_MAX, socket.MSG_DONTWAIT) or None
        except OSError:
            return None

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


class Consumer:
    """The worker's side."""

    def __init__(self, file: int) -> None:
        os.set_inheritable(file, False)  # the programs that jobs start must not have it
        self._socket = socket.socket(fileno=file)

    def consume(self) -> bytes:
        """Waits for the next order and takes it. Empty if the starter has ended."""
        return self._socket.recv(BYTES_MAX)
