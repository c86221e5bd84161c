"""One end of one socket: the messages that wait to be sent, and the pieces that arrive."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import zmq

from pyrite.wire.messages import Message, Reassembly, pieces

if TYPE_CHECKING:
    from pyrite.wire.wire import Connection


# Plain ints: to combine the flag objects of ZeroMQ takes longer than to send a message.
_NOBLOCK: Final = int(zmq.NOBLOCK)
_SNDMORE: Final = int(zmq.SNDMORE)


class Channel:
    """Has a socket of its own; or, with a `route`, uses the listener's socket like other peers."""

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
        """Sends as much as the socket takes. Returns False if something is left to send; nothing is
        if the peer is gone."""
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
                with self.lock:  # what was added meanwhile is not among the pieces yet
                    self.unsent = sum(map(len, self._pieces)) + sum(map(len, self.outgoing))
                return False
            except zmq.ZMQError:  # the peer is gone; the monitor reports that
                self._pieces.clear()
                break
            self._pieces.popleft()
        with self.lock:
            self.unsent = sum(map(len, self.outgoing))
        return True
