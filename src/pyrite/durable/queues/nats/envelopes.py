"""What stands in a message of NATS: a line of JSON, then the body.

A long body, and messages that were staged, are stored elsewhere in the same stream; the message has
their range.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple


class Range(NamedTuple):
    """The messages on a subject from one sequence to another, both included."""

    subject: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Envelope:
    """`edge` is the number of the edge. `staged` is a range of messages that this one stands for;
    `long` is the range of the pieces of a long body."""

    edge: int
    body: bytes = b""
    sentinel: str | None = None
    staged: Range | None = None
    long: Range | None = None

    def data(self) -> bytes:
        head: list[object] = [self.edge, self.sentinel, self.staged, self.long]
        while head[-1] is None:
            head.pop()
        return json.dumps(head, separators=(",", ":")).encode() + b"\n" + self.body


def read_envelope(data: bytes) -> Envelope:
    """
    >>> read_envelope(Envelope(3, b"body", staged=Range("s", 1, 2)).data()).staged
    Range(subject='s', first=1, last=2)
    """
    head, _, body = data.partition(b"\n")
    edge, sentinel, staged, long = (*json.loads(head), None, None, None)[:4]
    return Envelope(edge, body, sentinel, staged and Range(*staged), long and Range(*long))


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """The message of a record. The state is in it if `is_here`; else in the record with the
    sequence `at`, or in a range, or there is none."""

    record: str
    state: bytes = b""
    is_here: bool = False
    at: int = 0
    long: Range | None = None

    def data(self) -> bytes:
        head = [self.record, self.is_here, self.at, self.long]
        return json.dumps(head, separators=(",", ":")).encode() + b"\n" + self.state


def read_stored_record(data: bytes) -> StoredRecord:
    head, _, state = data.partition(b"\n")
    record, is_here, at, long = json.loads(head)
    return StoredRecord(record, state, is_here, at, long and Range(*long))
