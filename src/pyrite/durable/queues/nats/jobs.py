"""A job as the queues in NATS know it, and the numbers of its messages."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from typing import Final

from pyrite.durable.protocol.workflow import Part
from pyrite.durable.queues.nats.streams import Stream
from pyrite.durable.queues.numbering import Numbering

SPAN: Final = 1 << 40
"""The sequence of a message is that in the stream times SPAN, plus its place among the staged
messages for which one message stands. The last or only one has the last place, so the position
after it is that of the next message in the stream."""


@dataclass(frozen=True, slots=True)
class Job:
    """`streams` has one for each server."""

    name: str
    numbers: Numbering
    streams: tuple[Stream, ...]

    def home(self, part: Part) -> int:
        return home(part, len(self.streams))


def home(part: Part, servers: int) -> int:
    return zlib.crc32(f"{part.job}/{part.task}/{part.member}".encode()) % servers


def sequence_of(sequence: int, behind: int | None = None) -> int:
    return sequence * SPAN + (SPAN - 1 if behind is None else behind)


def new_id() -> str:
    return os.urandom(10).hex()
