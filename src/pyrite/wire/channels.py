"""One socket's end of a connection: what waits to be sent, and the pieces of what arrives."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import zmq

from pyrite.wire.messages import Message, Reassembly, pieces

if TYPE_CHECKING:
    from pyrite.wire.wire import Connection


# As plain numbers: what `&` and `|` make of ZeroMQ's own takes longer than to send a message.
_NOBLOCK: Final = int(zmq.NOBLOCK)
_SNDMORE: Final = int(zmq.SNDMORE)


class Channel:
    """The end of a socket of its own, or, with a `route`, one of those that a listener's has."""

    __slots__ = (
        "_pieces",
        "connection",
        "lock",
        "on_hello",
        "outgoing",
        "reassembly",
        "route",
        "socket",
        "token",
        "unsent",
    )

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        route: bytes | None,
        on_hello: Callable[[Channel, Message], None],
    ) -> None:
        self.socket = socket
        self.route = route
        self.on_hello = on_hello
        self.reassembly = Reassembly()
        self.outgoing: list[bytes] = []
        self._pieces: deque[bytes] = deque()
        self.unsent = 0
        self.lock = threading.Lock()
        self.connection: Connection | None = None
        self.token = ""

    def add(self, data: bytes) -> None:
        with self.lock:
            self.outgoing.append(data)
            self.unsent += len(data)

    def flush(self) -> bool:
        """Sends what the socket takes. Whether all was sent, or nobody is there any more."""
        if self.outgoing:
            with self.lock:
                messages = list(self.outgoing)
                self.outgoing.clear()
            self._pieces.extend(pieces(messages))
        while self._pieces:
            piece = self._pieces[0]
            try:
                if self.route is not None:
                    self.socket.send(self.route, _NOBLOCK | _SNDMORE)
                self.socket.send(piece, _NOBLOCK)
            except zmq.Again:
                with self.lock:  # of what was added meanwhile nothing is among the pieces
                    self.unsent = sum(map(len, self._pieces)) + sum(map(len, self.outgoing))
                return False
            except zmq.ZMQError:  # gone: the monitor will say so, or has
                self._pieces.clear()
                break
            self._pieces.popleft()
        with self.lock:
            self.unsent = sum(map(len, self.outgoing))
        return True
