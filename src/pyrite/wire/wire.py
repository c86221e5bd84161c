"""The wire: all connections of one member or client, and the messages on them.

A connection has two sockets, so that acks and cancels overtake data. It is established when both
sides have said hello on both sockets and have the same versions. It ends when one of the sockets is
lost. One thread owns the wire: it calls `turn` to send and receive, and waits in `park`. Other
threads may call `send` and `wake` only.
"""

from __future__ import annotations

import logging
import os
import secrets
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import zmq

from pyrite.forks import repair_after_fork
from pyrite.wire.channels import Channel
from pyrite.wire.forked import close_inherited
from pyrite.wire.identity import Identity
from pyrite.wire.keys import Keys
from pyrite.wire.messages import (
    URGENT,
    BadMessage,
    Hello,
    Message,
    Payload,
    Refused,
    decode,
    encode,
)
from pyrite.wire.sockets import Context, Limits, Seen, seen_by

logger = logging.getLogger("pyrite.cluster")

_NOBLOCK: Final = int(zmq.NOBLOCK)
_POLLIN: Final = int(zmq.POLLIN)
MESSAGES_PER_TURN: Final = 256
"""How many messages are read from one socket before the next socket is read."""
HELD_SECONDS: Final = 0.0002
"""How long a message may wait to be sent together with others while the owner is busy."""
RETRY_SECONDS: Final = 0.0005
"""How soon to retry after a socket did not take all that there was to send."""
UNREAD_SECONDS: Final = 60.0
"""For this long, messages of a connection that was lost may still be unread."""
WATCHED_FILES: Final = 1024
"""`select` takes only file descriptors below this. Unlike `epoll`, it can wait for less than a
millisecond."""


@dataclass(frozen=True, slots=True)
class Connected:
    connection: Connection


@dataclass(frozen=True, slots=True)
class Received:
    connection: Connection
    message: Message


@dataclass(frozen=True, slots=True)
class Lost:
    """A connection has ended."""

    connection: Connection
    reason: str


@dataclass(frozen=True, slots=True)
class NotReached:
    """A dialed member could not be connected to."""

    address: str
    reason: str
    is_refusal: bool = False
    """Whether somebody is there, but wants no connection with us, or we none with them."""


Event = Connected | Received | Lost | NotReached


class Connection:
    """A connection to another member, or between a member and a client."""

    def __init__(self, wire: Wire, peer: Hello, data: Channel, urgent: Channel) -> None:
        self._wire = wire
        self.peer = peer
        self._data = data
        self._urgent = urgent
        self.is_open = True
        self.on_lost: list[Callable[[str], None]] = []

    @property
    def name(self) -> str:
        """The name of the peer in error messages."""
        return f"member {self.peer.address}" if self.peer.address else "a client"

    @property
    def unsent(self) -> int:
        """How many bytes wait to be sent, besides a few that ZeroMQ has queued."""
        return self._data.unsent

    def send(self, message: Message) -> None:
        """Sends a message. Does nothing if the connection has ended. Any thread may call this."""
        if self.is_open:
            self._wire.put(self._urgent if isinstance(message, URGENT) else self._data, message)

    def __repr__(self) -> str:
        return f"<connection to {self.name}{'' if self.is_open else ', ended'}>"


class _Dialed:
    """A member that was dialed, with both sockets and their monitors."""

    def __init__(self, address: str, token: str, give_up: float) -> None:
        self.address = address
        self.token = token
        self.give_up = give_up
        self.channels: dict[bool, Channel] = {}
        self.monitors: list[zmq.Socket[bytes]] = []
        self.hellos: dict[bool, Hello] = {}
        self.early: list[tuple[Channel, Message]] = []
        """Messages on one socket that came before the hello on the other: the peer, which has both
        hellos, may send already."""
        self.has_our_secret = False
        """Whether that is certain. A member with another secret just closes the connection."""
        self.ended = False


class Wire:
    def __init__(self, keys: Keys | None, me: Identity, limits: Limits | None = None) -> None:
        self.me = me
        self._limits = limits or Limits()
        self._context = Context(keys, self._limits)
        self._events: list[Event] = []
        self._readers: dict[int, Callable[[], bool]] = {}
        """By file descriptor, the function that reads it. It returns True if there may be more."""
        self._unread: set[int] = set()
        """Files to read even if epoll does not report them. ZeroMQ signals only once, and a send
        may use up the signal."""
        self._unsent: set[Channel] = set()
        """Channels that have something to send."""
        self._is_blocked = False
        """Whether a socket did not take everything at the last flush."""
        self._epoll = select.epoll()
        self._files: dict[zmq.Socket[bytes], int] = {}
        self._wake_file = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._watch(self._wake_file, self._read_wake)
        self._owner = threading.get_ident()
        self._routes: dict[bytes, Channel] = {}
        self._open_files: set[int] = set()
        """The files of connections that the listener has accepted and not lost."""
        self._route_of_file: dict[int, bytes] = {}
        self._refusals = 0
        """How many connections were refused whose end the monitor has not reported yet."""
        self._ended_routes: dict[bytes, float] = {}
        """Routes of connections that were lost recently, and when. What they sent before may still
        be unread; it must not be taken for a new connection."""
        self._half: dict[str, dict[bool, tuple[Channel, Hello]]] = {}
        """By id, connections of which only one socket has said hello so far."""
        self._listener: zmq.Socket[bytes] | None = None
        self._listener_monitor: zmq.Socket[bytes] | None = None
        self._dialing: dict[str, _Dialed] = {}
        self._warned: set[str] = set()
        self._closed = False
        self._held_until = 0.0
        self._port: int | None = None
        self._dialed_addresses: set[str] = set()
        repair_after_fork(self)

    def after_fork(self) -> None:
        """In a forked child, which cannot use the wire."""
        if not self._closed:
            close_inherited(self._port, self._dialed_addresses)

    # For the owner only.

    def own(self) -> None:
        """Makes the calling thread the owner."""
        self._owner = threading.get_ident()

    def listen(self, host: str, port: int, file: int | None = None) -> int:
        """Accepts connections. Returns the port. `file` is a socket that listens there already;
        then that one is used and stays open."""
        self._listener, self._listener_monitor, port = self._context.listener(host, port, file)
        self._watch_socket(self._listener_monitor, self._read_listener_monitor)
        self._watch_socket(self._listener, self._read_listener)
        self._port = port
        return port

    def dial(self, address: str) -> None:
        """Connects to a member. A later turn returns Connected or NotReached."""
        dialed = _Dialed(address, secrets.token_hex(8), time.monotonic() + self._limits.handshake)
        self._dialing[dialed.token] = dialed
        self._dialed_addresses.add(address)
        for urgent in (False, True):
            socket, monitor = self._context.dialer(address)
            channel = Channel(socket, None, partial(self._hello_to_dialer, dialed, urgent))
            dialed.channels[urgent] = channel
            dialed.monitors.append(monitor)
            self._watch_socket(monitor, partial(self._read_dialed_monitor, dialed, monitor))
            self._watch_socket(socket, partial(self._read_dialed, dialed, channel))
            self.put(channel, self.me.hello(dialed.token, urgent=urgent))

    def turn(self) -> list[Event]:
        """Sends and receives without waiting. Returns what happened."""
        if self._unsent and time.monotonic() >= self._held_until:
            self.flush()
        for file in {file for file, _ in self._epoll.poll(0)} | self._unread:
            reader = self._readers.get(file)
            if reader is not None and reader():
                self._unread.add(file)
            else:
                self._unread.discard(file)
        if self._dialing:
            self._give_up_dialing()
        events, self._events = self._events, []
        return events

    def fileno(self) -> int:
        """A file that can be read when something arrives or `wake` is called, for an owner that
        waits for other files as well. It waits at most as long as `patience` says, then calls
        `turn`."""
        return self._epoll.fileno()

    def patience(self, seconds: float | None) -> float | None:
        """How long the owner may wait until the next turn, if it wants to wait `seconds`. None
        means forever. Sends what there is to send."""
        if self._unsent and not self._is_blocked:
            self.flush()
        if self._unread or self._events:
            return 0.0
        if self._is_blocked and self._unsent:
            seconds = RETRY_SECONDS if seconds is None else min(seconds, RETRY_SECONDS)
        if self._dialing:
            first = min(dialed.give_up for dialed in self._dialing.values())
            left = max(0.0, first - time.monotonic())
            seconds = left if seconds is None else min(seconds, left)
        return seconds

    def park(self, seconds: float | None) -> None:
        """Sleeps until something arrives, `wake` is called, or the time has passed."""
        seconds = self.patience(seconds)
        if seconds == 0:
            return
        if self._epoll.fileno() < WATCHED_FILES:
            select.select((self._epoll,), (), (), seconds)
        else:
            self._epoll.poll(seconds, 1)

    def flush(self) -> None:
        """Sends what waits, without waiting for more. Only the owner may call this."""
        self._is_blocked = False
        if self._unsent:
            for channel in tuple(self._unsent):
                self._flush(channel)

    def drop(self, connection: Connection, reason: str) -> None:
        """Ends a connection, and tells the peer why."""
        connection.send(Refused(reason))
        self.flush()
        self._lose(connection, reason)

    def close(self) -> None:
        """Ends all connections at once."""
        if self._closed:
            return
        self._closed = True
        self._epoll.close()
        self._context.close()
        os.close(self._wake_file)

    # For any thread.

    def wake(self) -> None:
        """Makes `park` return."""
        if not self._closed:
            os.eventfd_write(self._wake_file, 1)

    def put(self, channel: Channel, message: Message) -> None:
        """Queues a message. All queued messages are sent together, when the owner parks or after
        a moment: each piece wakes a thread of ZeroMQ, which costs more than the message."""
        channel.add(encode(message))
        if not self._unsent:
            self._held_until = time.monotonic() + HELD_SECONDS
        self._unsent.add(channel)
        if threading.get_ident() != self._owner:
            self.wake()

    # Reading and writing.

    def _flush(self, channel: Channel) -> None:
        self._unsent.discard(channel)
        if not channel.flush():
            self._unsent.add(channel)
            self._is_blocked = True
        file = self._files.get(channel.socket)
        if file is not None and _has_message(channel.socket):
            self._unread.add(file)

    def _watch(self, file: int, reader: Callable[[], bool]) -> None:
        self._readers[file] = reader
        self._epoll.register(file, select.EPOLLIN)

    def _watch_socket(self, socket: zmq.Socket[bytes], reader: Callable[[], bool]) -> None:
        file = self._files[socket] = int(socket.fd)
        self._watch(file, reader)
        self._unread.add(file)  # it may have signalled before it was registered

    def _forget_socket(self, socket: zmq.Socket[bytes]) -> None:
        file = self._files.pop(socket, None)
        if file is not None:
            del self._readers[file]
            self._unread.discard(file)
            self._epoll.unregister(file)

    def _read_wake(self) -> bool:
        try:
            os.eventfd_read(self._wake_file)
        except BlockingIOError:
            pass
        return False

    def _read_listener(self) -> bool:
        assert self._listener is not None
        socket = self._listener
        for _ in range(MESSAGES_PER_TURN):
            if not _has_message(socket):
                return False
            route = socket.recv(_NOBLOCK)
            frame = socket.recv(_NOBLOCK, copy=False)
            more = frame.more
            while more:  # our messages have one part; others are ignored
                more = socket.recv(_NOBLOCK, copy=False).more
            channel = self._routes.get(route) or self._new_channel(route, frame.get(zmq.SRCFD))
            if channel is None:
                continue
            self._take(channel, frame.buffer)
        return True

    def _new_channel(self, route: bytes, file: int) -> Channel | None:
        """The channel of a connection whose first message has arrived; None if the connection is
        lost already. Another connection may have had the same file before: then the later one is
        open."""
        assert self._listener is not None
        self._read_listener_monitor()
        if route in self._ended_routes or file not in self._open_files:
            return None
        other = self._route_of_file.get(file)
        if other is not None:
            if _is_earlier(route, other):
                return None
            self._lose_route(other)
        self._route_of_file[file] = route
        channel = self._routes[route] = Channel(self._listener, route, self._hello_to_listener)
        return channel

    def _read_dialed(self, dialed: _Dialed, channel: Channel) -> bool:
        for _ in range(MESSAGES_PER_TURN):
            if dialed.ended or not _has_message(channel.socket):
                return False
            self._take(channel, channel.socket.recv(_NOBLOCK))
        return True

    def _take(self, channel: Channel, piece: Payload) -> None:
        try:
            wholes = channel.reassembly.add(piece)
            if not wholes and channel.connection is None and not channel.token:
                raise BadMessage("a message that is too long for a hello")
            for whole in wholes:
                self._arrived(channel, decode(whole))
        except BadMessage as error:
            if channel.connection is not None:
                self.drop(channel.connection, f"the peer sent {error}")
            elif not channel.token:
                self._refuse(channel, f"the first message is not a hello: {error}")

    def _arrived(self, channel: Channel, message: Message) -> None:
        connection = channel.connection
        if connection is None:
            channel.on_hello(channel, message)
        elif isinstance(message, Refused):
            self._lose(connection, message.reason)
        elif connection.is_open:
            self._events.append(Received(connection, message))

    # The start of connections.

    def _hello_to_listener(self, channel: Channel, hello: Message) -> None:
        if channel.token:
            return  # refused, or waiting for the hello of its other socket
        if not isinstance(hello, Hello):
            self._refuse(channel, "the first message is not a hello")
            return
        objection = self.me.objection_to(hello)
        if objection is not None:
            self._refuse(channel, objection)
            return
        channel.token = hello.connection
        half = self._half.setdefault(hello.connection, {})
        half[hello.urgent] = (channel, hello)
        if len(half) < 2:
            return
        del self._half[hello.connection]
        for urgent, (each, _) in half.items():
            self.put(each, self.me.hello(hello.connection, urgent=urgent))
        self._connect(hello, half[False][0], half[True][0])

    def _hello_to_dialer(
        self, dialed: _Dialed, urgent: bool, channel: Channel, message: Message
    ) -> None:
        if isinstance(message, Refused):
            is_refusal = urgent not in dialed.hellos  # else it had accepted us before
            if is_refusal:
                self._warn(f"cannot connect to {dialed.address}: {message.reason}")
            self._end_dialing(dialed, message.reason, is_refusal=is_refusal)
            return
        if urgent in dialed.hellos:
            dialed.early.append((channel, message))
            return
        objection: str | None = "its first message is not a hello"
        if isinstance(message, Hello):
            objection = self.me.objection_to(message)
        if objection is not None:
            self._warn(f"cannot connect to {dialed.address}: {objection}")
            self._end_dialing(dialed, objection, is_refusal=True)
            return
        assert isinstance(message, Hello)
        channel.token = dialed.token
        dialed.hellos[urgent] = message
        if len(dialed.hellos) == 2:
            del self._dialing[dialed.token]
            connection = self._connect(message, dialed.channels[False], dialed.channels[True])
            connection.on_lost.append(lambda _: self._close_dialed(dialed))
            for on_channel, each in dialed.early:
                self._arrived(on_channel, each)
            dialed.early.clear()

    def _connect(self, peer: Hello, data: Channel, urgent: Channel) -> Connection:
        connection = Connection(self, peer, data, urgent)
        data.connection = urgent.connection = connection
        self._events.append(Connected(connection))
        return connection

    def _refuse(self, channel: Channel, reason: str) -> None:
        channel.token = "refused"
        self._refusals = max(self._refusals, 1)  # its other socket may end before it says hello
        self._warn(f"refused a connection to {self.me.address}: {reason}")
        self.put(channel, Refused(reason))

    # The end of connections.

    def _read_listener_monitor(self) -> bool:
        assert self._listener_monitor is not None
        for seen in seen_by(self._listener_monitor):
            if seen.accepted:
                self._open_files.add(seen.file)
            elif seen.refused:
                self._refusals += 1
                self._warn(
                    f"refused a connection to {self.me.address}: the peer does not know the secret "
                    "or does not speak the protocol"
                )
            elif seen.lost:
                self._open_files.discard(seen.file)
                route = self._route_of_file.pop(seen.file, None)
                if route is not None:
                    self._lose_route(route)
                elif self._refusals:
                    self._refusals -= 1
                else:
                    self._warn(
                        f"a connection to {self.me.address} ended before the peer said hello: the "
                        "peer does not speak the cluster's protocol, or it is gone"
                    )
        return False

    def _lose_route(self, route: bytes) -> None:
        channel = self._routes.pop(route)
        self._remember_ended(route)
        self._unsent.discard(channel)
        if channel.connection is not None:
            self._lose(channel.connection, "the connection was closed")
        else:
            self._half.pop(channel.token, None)

    def _remember_ended(self, route: bytes) -> None:
        now = time.monotonic()
        while self._ended_routes:
            oldest, at = next(iter(self._ended_routes.items()))
            if now - at < UNREAD_SECONDS:
                break
            del self._ended_routes[oldest]
        self._ended_routes[route] = now

    def _read_dialed_monitor(self, dialed: _Dialed, monitor: zmq.Socket[bytes]) -> bool:
        seen: list[Seen] = list(seen_by(monitor))
        dialed.has_our_secret |= any(each.agreed for each in seen)
        if dialed.ended or all(each.agreed for each in seen):
            return False
        for channel in dialed.channels.values():
            self._read_dialed(dialed, channel)  # its last message may say why it refuses
        connection = dialed.channels[False].connection
        if connection is not None:
            self._lose(connection, "the connection was closed")
        elif any(each.lost or each.refused for each in seen):
            self._end_dialing(dialed, _why_closed(dialed))
        else:
            self._end_dialing(dialed, "nothing listens there")
        return False

    def _lose(self, connection: Connection, reason: str) -> None:
        if connection.is_open:
            connection.is_open = False
            for tell in connection.on_lost:
                tell(reason)
            self._events.append(Lost(connection, reason))

    def _give_up_dialing(self) -> None:
        now = time.monotonic()
        for dialed in list(self._dialing.values()):
            if dialed.give_up <= now:
                self._end_dialing(dialed, f"it did not answer within {self._limits.handshake:g} s")

    def _end_dialing(self, dialed: _Dialed, reason: str, *, is_refusal: bool = False) -> None:
        if self._dialing.pop(dialed.token, None) is not None:
            self._close_dialed(dialed)
            self._events.append(NotReached(dialed.address, reason, is_refusal))

    def _close_dialed(self, dialed: _Dialed) -> None:
        dialed.ended = True
        for channel, monitor in zip(dialed.channels.values(), dialed.monitors):
            self._unsent.discard(channel)
            self._forget_socket(monitor)
            self._forget_socket(channel.socket)
            channel.socket.disable_monitor()
            monitor.close(linger=0)
            channel.socket.close(linger=0)

    def _warn(self, text: str) -> None:
        """Logs each warning once, so that a port scan does not fill the log."""
        logger.log(logging.DEBUG if text in self._warned else logging.WARNING, "%s", text)
        self._warned.add(text)


def _why_closed(dialed: _Dialed) -> str:
    """Why a member may have closed the connection before it said hello."""
    if dialed.has_our_secret:
        return "it closed the connection while connecting; it may be starting or ending"
    return (
        "it closed the connection while connecting: it may be starting or ending, or it has "
        "another secret, or it is not a member"
    )


def _is_earlier(route: bytes, other: bytes) -> bool:
    """Whether a route is older than another. ZeroMQ numbers them with 32 bits, which wrap."""
    ahead = (int.from_bytes(other) - int.from_bytes(route)) % (1 << 32)
    return ahead < 1 << 31


def _has_message(socket: zmq.Socket[bytes]) -> bool:
    events: Any = socket.getsockopt(zmq.EVENTS)
    return bool(int(events) & _POLLIN)
