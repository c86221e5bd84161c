"""Tells an `Ear` something, one way. Whoever tells never waits: what cannot be sent is lost.

This file imports little, because each Python worker of Spark imports it.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Final

import zmq

MOST_UNSENT: Final = 8
"""How many messages wait for a connection. Further ones are lost."""
RETRY_SECONDS: Final = 1.0
LONGEST_RETRY_SECONDS: Final = 60.0


class Teller:
    """`public` and `secret` are the keys that the ear has, too. One thread may use it."""

    def __init__(self, address: str, public: bytes, secret: bytes) -> None:
        self._socket = socket = _context_of(os.getpid()).socket(zmq.PUSH)
        socket.linger = 0
        socket.sndhwm = MOST_UNSENT
        socket.setsockopt(zmq.IPV6, 1)
        socket.setsockopt(zmq.RECONNECT_IVL, int(RETRY_SECONDS * 1000))
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, int(LONGEST_RETRY_SECONDS * 1000))
        socket.curve_publickey, socket.curve_secretkey = public, secret
        socket.curve_serverkey = public
        socket.connect(f"tcp://{address}")

    def tell(self, message: bytes) -> bool:
        """Sends a message, or will when there is a connection. Returns False if it is lost."""
        try:
            self._socket.send(message, zmq.NOBLOCK)
        except zmq.ZMQError:
            return False
        return True

    def close(self) -> None:
        self._socket.close(linger=0)


@cache
def _context_of(pid: int) -> zmq.Context[zmq.Socket[bytes]]:
    """All tellers of a process share its context, which has two threads. A forked child cannot use
    that of its parent."""
    return zmq.Context()
