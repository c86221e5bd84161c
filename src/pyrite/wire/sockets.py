"""The ZeroMQ sockets of members and clients, with all their limits.

ZeroMQ does the framing, the reading and writing without Python's lock, the authentication, the
encryption and the heartbeats. A connection that has ended is never re-established.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import zmq
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils.monitor import recv_monitor_message

from pyrite.wire.keys import Keys
from pyrite.wire.messages import PIECE_BYTES

ZAP_DOMAIN: Final = "pyrite"
PIECES_UNDER_WAY: Final = 32
"""How many pieces ZeroMQ may queue for one peer. More than that waits in the `Channel`."""
SEALING_BYTES: Final = 256
"""More than encryption adds to a piece."""

MOST_HEARD: Final = 64 << 20
"""The most bytes of a message to an ear, which is not cut into pieces: what is told of thousands of
vertices has some MB."""

_ACCEPTED: Final = zmq.EVENT_ACCEPTED
_LOST: Final = zmq.EVENT_DISCONNECTED
_REFUSED: Final = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
_AGREED: Final = zmq.EVENT_HANDSHAKE_SUCCEEDED
_NOT_REACHED: Final = zmq.EVENT_CLOSED | zmq.EVENT_CONNECT_RETRIED


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long the peer may take, in seconds."""

    handshake: float = 5.0
    silence: float = 30.0
    """A peer that sends nothing for this long, not even a heartbeat, counts as lost."""


class Context:
    """Makes the sockets of one process. With keys, only peers with the same keys can connect;
    without keys, any peer can."""

    def __init__(self, keys: Keys | None, limits: Limits) -> None:
        self._keys = keys
        self._limits = limits
        self._context = zmq.Context()
        self._context.max_sockets = 8192
        self._authenticator: ThreadAuthenticator | None = None

    def listener(
        self, host: str, port: int, file: int | None = None
    ) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes], int]:
        """A socket that accepts connections, its monitor, and its port. Port 0 means any free port.
        `file` is a socket that listens there already; then that one is used and stays open."""
        socket = self._bounded(zmq.ROUTER)
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._serve(socket)
        if file is not None:
            socket.setsockopt(zmq.USE_FD, file)
        monitor = self._monitor(socket)  # first: a peer may be accepted as soon as it is bound
        try:
            socket.bind(f"tcp://{host}:{port or '*'}")
        except zmq.ZMQError:
            socket.disable_monitor()
            monitor.close(linger=0)
            socket.close(linger=0)
            raise
        return socket, monitor, _port_of(socket)

    def dialer(self, address: str) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
        """A socket that connects to a member, and its monitor."""
        socket = self._bounded(zmq.DEALER)
        socket.reconnect_ivl = -1
        socket.setsockopt(zmq.CONNECT_TIMEOUT, int(self._limits.handshake * 1000))
        if self._keys is not None:
            socket.curve_serverkey = self._keys.public
        monitor = self._monitor(socket, _AGREED)
        socket.connect(f"tcp://{address}")
        return socket, monitor

    def ear(self, host: str) -> tuple[zmq.Socket[bytes], int]:
        """A socket on a free port that only receives, and that port."""
        socket = self._bounded(zmq.PULL)
        socket.setsockopt(zmq.MAXMSGSIZE, MOST_HEARD)
        self._serve(socket)
        socket.bind(f"tcp://{host}:*")
        return socket, _port_of(socket)

    def close(self) -> None:
        if self._authenticator is not None:
            self._authenticator.stop()
        self._context.destroy(linger=0)

    def _monitor(self, socket: zmq.Socket[bytes], more: int = 0) -> zmq.Socket[bytes]:
        monitor: zmq.Socket[bytes] = socket.get_monitor_socket(
            _ACCEPTED | _LOST | _REFUSED | _NOT_REACHED | more
        )
        return monitor

    def _bounded(self, kind: int) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        limits = self._limits
        socket.linger = 0
        socket.setsockopt(zmq.IPV6, 1)
        socket.setsockopt(zmq.MAXMSGSIZE, PIECE_BYTES + SEALING_BYTES)
        socket.setsockopt(zmq.HANDSHAKE_IVL, int(limits.handshake * 1000))
        socket.setsockopt(zmq.HEARTBEAT_IVL, int(limits.silence * 1000 / 6))
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, int(limits.silence * 1000 * 5 / 6))
        socket.sndhwm = PIECES_UNDER_WAY
        if self._keys is not None:
            socket.curve_publickey, socket.curve_secretkey = self._keys
        return socket

    def _serve(self, socket: zmq.Socket[bytes]) -> None:
        """With keys, the socket accepts only peers that have them."""
        if self._keys is not None:
            self._authenticate()
            socket.curve_server = True
            socket.zap_domain = ZAP_DOMAIN.encode()

    def _authenticate(self) -> None:
        """From now on, only peers with our own public key are accepted."""
        if self._authenticator is None:
            assert self._keys is not None
            self._authenticator = ThreadAuthenticator(self._context)
            self._authenticator.start()
            self._authenticator.thread.name = "pyrite-zap"
            self._authenticator.configure_curve_callback(
                domain=ZAP_DOMAIN, credentials_provider=_OnlyOurKey(self._keys.public)
            )


def _port_of(socket: zmq.Socket[bytes]) -> int:
    endpoint: Any = socket.getsockopt(zmq.LAST_ENDPOINT)
    return int(endpoint.rstrip(b"\0").rpartition(b":")[2])


class _OnlyOurKey:
    def __init__(self, public: bytes) -> None:
        self._public = public

    def callback(self, domain: str, key: bytes) -> bool:
        return key == self._public


@dataclass(frozen=True, slots=True)
class Seen:
    """An event from a socket's monitor: a connection was accepted by the listener, lost, refused,
    or could not be made; or a member that was dialed has shown that it has the same secret."""

    accepted: bool
    agreed: bool
    lost: bool
    refused: bool
    file: int
    """The file descriptor of a connection that was accepted or lost."""


def seen_by(monitor: zmq.Socket[bytes]) -> Iterator[Seen]:
    """The events of a monitor since the last call."""
    while True:
        try:
            event: Any = recv_monitor_message(monitor, zmq.NOBLOCK)
        except zmq.Again:
            return
        kind = event["event"]
        yield Seen(
            accepted=bool(kind & _ACCEPTED),
            agreed=bool(kind & _AGREED),
            lost=bool(kind & _LOST),
            refused=bool(kind & _REFUSED),
            file=int(event["value"]),
        )
