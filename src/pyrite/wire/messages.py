"""The messages between members and clients, and how they are encoded. Pure.

A message has one byte for its kind, fields of fixed size, and a payload. Nothing here unpickles a
payload. Bytes that are not exactly one message raise `BadMessage`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

Payload = bytes | memoryview

ID_BYTES: Final = 8
HASH_BYTES: Final = 32
PIECE_BYTES: Final = 128 << 10
MOST_BYTES: Final = (1 << 30) + (1 << 20)
"""The largest message: 1 GB of payload, and some space for the other fields."""
MOST_HELLO_BYTES: Final = 64 << 10


class BadMessage(Exception):
    """Bytes that are not a message. The sender does not speak this protocol."""


class Hello(NamedTuple):
    """The first message on every connection, from both sides."""

    pyrite: str
    python: str
    address: str
    """The address of the member that sends it; empty for a client."""
    incarnation: str
    """Identifies the process: a member that was restarted has a new one."""
    members: tuple[str, ...]
    """The addresses of all members, in the order of their numbers."""
    cluster: str
    """The name of the sender's cluster, if its members come and go. Then there is no list."""
    connection: str
    """The id of the connection. Its two sockets have the same."""
    urgent: bool
    """Whether this is the socket for urgent messages."""


class Refused(NamedTuple):
    """Sent instead of a hello: why the connection is refused."""

    reason: str


class PacketMessage(NamedTuple):
    """Items of one edge."""

    execution: bytes
    edge: int
    weight: int
    item_count: int
    items: Payload


class DoneMessage(NamedTuple):
    """The sender has sent its last packet of an edge."""

    execution: bytes
    edge: int


class Init(NamedTuple):
    """Orders a member to run its part of an execution."""

    execution: bytes
    plan: bytes
    order: Payload


class Submit(NamedTuple):
    """Asks a member to coordinate an execution of a job."""

    execution: bytes
    job: bytes
    plan: bytes


class Drive(NamedTuple):
    """Asks a member to run a normal job on Spark."""

    execution: bytes
    order: Payload


class Running(NamedTuple):
    """Tells a client that its normal job runs now."""

    execution: bytes


class PlanMessage(NamedTuple):
    """All bytes of a plan."""

    plan: bytes
    dag: Payload


class WantPlan(NamedTuple):
    """Asks for a plan of which the sender has only the hash."""

    plan: bytes


class Answer(NamedTuple):
    """The outcome of one member's part of an execution, or, to a client, of all of it."""

    execution: bytes
    outcome: Payload


class Call(NamedTuple):
    """Asks a member to do something, and to reply."""

    number: int
    request: Payload


class Reply(NamedTuple):
    number: int
    result: Payload


class Cancel(NamedTuple):
    execution: bytes


class Check(NamedTuple):
    """The executions that the sender runs and the receiver coordinates."""

    executions: tuple[bytes, ...]


class Unknown(NamedTuple):
    """The executions of a `Check` that the coordinator does not know."""

    executions: tuple[bytes, ...]


class Ack(NamedTuple):
    """By execution and edge, the unit up to which the receiver of this message may send."""

    limits: tuple[tuple[bytes, tuple[tuple[int, int], ...]], ...]


class Parcel(NamedTuple):
    """Something between a workload's master and a worker that was launched. They alone know what
    the labels mean."""

    label: int
    content: Payload


Message = (
    Hello
    | Refused
    | PacketMessage
    | DoneMessage
    | Init
    | Submit
    | Drive
    | Running
    | PlanMessage
    | WantPlan
    | Answer
    | Call
    | Reply
    | Cancel
    | Check
    | Unknown
    | Ack
    | Parcel
)
URGENT: Final = (Cancel, Check, Unknown, Ack)
"""Messages that overtake the others, because they have a socket of their own."""


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    kind = _KINDS[type(message)]
    return bytes((kind,)) + _ENCODERS[kind](message)


def decode(data: Payload) -> Message:
    """Decodes a message. Raises BadMessage."""
    view = memoryview(data)
    if not view:
        raise BadMessage("an empty message")
    decoder = _DECODERS.get(view[0])
    if decoder is None:
        raise BadMessage(f"a message of unknown kind {view[0]}")
    try:
        return decoder(view[1:])
    except (struct.error, ValueError, RecursionError) as error:
        raise BadMessage(f"a malformed message of kind {view[0]}") from error


_WHOLE, _PART, _LAST_PART = 0, 1, 2
_LENGTH: Final = struct.Struct("<I")


def pieces(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Turns messages into the pieces that are sent, in order: several small messages go in one
    piece, and a large message goes in several."""
    together: list[bytes] = []
    size = 0
    for data in messages:
        if size + len(data) + _LENGTH.size >= PIECE_BYTES and together:
            yield _joined(together)
            together, size = [], 0
        if len(data) + _LENGTH.size < PIECE_BYTES:
            together += (_LENGTH.pack(len(data)), data)
            size += len(data) + _LENGTH.size
            continue
        last = len(data) - PIECE_BYTES
        for at in range(0, len(data), PIECE_BYTES):
            kind = _PART if at < last else _LAST_PART
            yield bytes((kind,)) + data[at : at + PIECE_BYTES]
    if together:
        yield _joined(together)


def _joined(parts: list[bytes]) -> bytes:
    return b"".join((bytes((_WHOLE,)), *parts))


class Reassembly:
    """Puts messages together from pieces, for one direction of one socket."""

    __slots__ = ("_held", "_most", "_parts")

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._parts: list[memoryview] = []
        self._held = 0

    def add(self, piece: Payload) -> list[Payload]:
        """The bytes of the messages that are complete now. Raises BadMessage."""
        view = memoryview(piece)
        kind = view[0] if view else -1
        if kind == _WHOLE:
            return _apart(view[1:])
        if kind not in (_PART, _LAST_PART):
            raise BadMessage("a piece of unknown kind")
        self._parts.append(view[1:])
        self._held += len(view) - 1
        if self._held > self._most:
            raise BadMessage(f"a message of more than {self._most} bytes")
        if kind == _PART:
            return []
        whole = b"".join(self._parts)
        self._parts, self._held = [], 0
        return [whole]


def _apart(view: memoryview) -> list[Payload]:
    found: list[Payload] = []
    at, end = 0, len(view)
    while at < end:
        if end - at < _LENGTH.size:
            raise BadMessage("a truncated piece")
        (length,) = _LENGTH.unpack_from(view, at)
        at += _LENGTH.size
        if length > end - at:
            raise BadMessage("a truncated piece")
        found.append(view[at : at + length])
        at += length
    return found


_ID = f"{ID_BYTES}s"
_PACKET: Final = struct.Struct(f"<{_ID}IQI")
_DONE: Final = struct.Struct(f"<{_ID}I")
_WITH_PLAN: Final = struct.Struct(f"<{_ID}{HASH_BYTES}s")
_SUBMIT: Final = struct.Struct(f"<{_ID}{_ID}{HASH_BYTES}s")
_PLAN: Final = struct.Struct(f"<{HASH_BYTES}s")
_EXECUTION: Final = struct.Struct(f"<{_ID}")
_NUMBER: Final = struct.Struct("<Q")
_LIMITS_OF: Final = struct.Struct(f"<{_ID}I")
_LIMIT: Final = struct.Struct("<Ii")
_LABEL: Final = struct.Struct("<B")


def _encode_hello(hello: Hello) -> bytes:
    return json.dumps(hello._asdict()).encode()


def _decode_hello(view: memoryview) -> Hello:
    if len(view) > MOST_HELLO_BYTES:
        raise ValueError("too long")
    fields: Any = json.loads(bytes(view))
    if not isinstance(fields, Mapping) or set(fields) != set(Hello._fields):
        raise ValueError("other fields")
    names = ("pyrite", "python", "address", "incarnation", "cluster", "connection")
    texts = [fields[name] for name in names]
    members = fields["members"]
    if not isinstance(members, list) or not isinstance(fields["urgent"], bool):
        raise ValueError("fields of another type")
    if not all(isinstance(text, str) for text in [*texts, *members]):
        raise ValueError("fields of another type")
    return Hello(**{**fields, "members": tuple(members)})


def _encode_ids(executions: Iterable[bytes]) -> bytes:
    return b"".join(executions)


def _decode_ids(view: memoryview) -> tuple[bytes, ...]:
    if len(view) % ID_BYTES:
        raise ValueError("half an id")
    return tuple(bytes(view[at : at + ID_BYTES]) for at in range(0, len(view), ID_BYTES))


def _encode_ack(ack: Ack) -> bytes:
    parts = []
    for execution, limits in ack.limits:
        parts.append(_LIMITS_OF.pack(execution, len(limits)))
        parts += [_LIMIT.pack(edge, limit) for edge, limit in limits]
    return b"".join(parts)


def _decode_ack(view: memoryview) -> Ack:
    groups, at = [], 0
    while at < len(view):
        execution, count = _LIMITS_OF.unpack_from(view, at)
        at += _LIMITS_OF.size
        end = at + count * _LIMIT.size
        if end > len(view):
            raise ValueError("cut short")
        groups.append((execution, tuple(_LIMIT.iter_unpack(view[at:end]))))
        at = end
    return Ack(tuple(groups))


def _fixed(
    of: Callable[..., Message], fields: struct.Struct
) -> tuple[Callable[[Any], bytes], Callable[[memoryview], Message]]:
    """For messages of fixed fields and nothing else."""
    return lambda message: fields.pack(*message), lambda view: of(*fields.unpack(view))


def _with_payload(
    of: Callable[..., Message], fields: struct.Struct
) -> tuple[Callable[[Any], bytes], Callable[[memoryview], Message]]:
    """For messages of fixed fields and a payload."""
    size = fields.size
    return (
        lambda message: b"".join((fields.pack(*message[:-1]), message[-1])),
        lambda view: of(*fields.unpack_from(view), view[size:]),
    )


_CODECS: Final[
    Sequence[tuple[type[Message], tuple[Callable[[Any], bytes], Callable[[memoryview], Message]]]]
] = (
    (Hello, (_encode_hello, _decode_hello)),
    (
        Refused,
        (lambda message: message.reason.encode(), lambda view: Refused(bytes(view).decode())),
    ),
    (PacketMessage, _with_payload(PacketMessage, _PACKET)),
    (DoneMessage, _fixed(DoneMessage, _DONE)),
    (Init, _with_payload(Init, _WITH_PLAN)),
    (Submit, _fixed(Submit, _SUBMIT)),
    (PlanMessage, _with_payload(PlanMessage, _PLAN)),
    (WantPlan, _fixed(WantPlan, _PLAN)),
    (Answer, _with_payload(Answer, _EXECUTION)),
    (Call, _with_payload(Call, _NUMBER)),
    (Reply, _with_payload(Reply, _NUMBER)),
    (Cancel, _fixed(Cancel, _EXECUTION)),
    (Check, (lambda message: _encode_ids(message.executions), lambda v: Check(_decode_ids(v)))),
    (Unknown, (lambda message: _encode_ids(message.executions), lambda v: Unknown(_decode_ids(v)))),
    (Ack, (_encode_ack, _decode_ack)),
    (Drive, _with_payload(Drive, _EXECUTION)),
    (Running, _fixed(Running, _EXECUTION)),
    (Parcel, _with_payload(Parcel, _LABEL)),
)
_KINDS: Final[dict[type[Any], int]] = {of: kind for kind, (of, _) in enumerate(_CODECS, 1)}
_ENCODERS: Final = {kind: codec[0] for kind, (_, codec) in enumerate(_CODECS, 1)}
_DECODERS: Final = {kind: codec[1] for kind, (_, codec) in enumerate(_CODECS, 1)}
