"""The data of the nodes that hold more than one word."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from pyrite.durable.protocol.states import PeerState
from pyrite.durable.protocol.workflow import Part

UNTOUCHED: Final = ""
"""What the coordinator creates a request node with. A peer sets it to TOUCHED or to a failure."""
TOUCHED: Final = "touched"
FAILED: Final = "failed: "
WANTED: Final = "wanted"
NOW: Final = "now"


def _text(*values: object) -> str:
    return json.dumps(values, separators=(",", ":"))


def _part(values: list[object] | None) -> Part | None:
    return None if values is None else Part(*values)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a peer, and its offer and part. `was` is the state in which a dead peer died:
    the completion of one that died sealing may still come. `since` is when it came into the state,
    in seconds since 1970, for people; 0 if that is not known."""

    state: PeerState
    offer: int = 0
    part: Part | None = None
    was: PeerState | None = None
    since: float = field(default=0.0, compare=False)

    def text(self) -> str:
        was = self.was and self.was.value
        return _text(self.state.value, self.offer, self.part, was, self.since)

    @classmethod
    def read(cls, text: str) -> Standing:
        state, offer, part, was, *since = json.loads(text)
        return cls(PeerState(state), offer, _part(part), was and PeerState(was), *since)


@dataclass(frozen=True, slots=True)
class Payload:
    """An offer to a peer. It is over when the cooldown of the peer has its number."""

    offer: int
    part: Part

    def text(self) -> str:
        return _text(self.offer, self.part)

    @classmethod
    def read(cls, text: str) -> Payload:
        offer, part = json.loads(text)
        return cls(offer, Part(*part))


def open_offer(payload: str | None, cooldown: str | None) -> Payload | None:
    """What a peer is to do now, by the data of its two nodes. None if it is free.

    >>> open_offer(None, None), open_offer(Payload(7, Part("j", "map", 0)).text(), "7")
    (None, None)
    """
    offered = Payload.read(payload) if payload else None
    return offered if offered and offered.offer > int(cooldown or "0") else None


class JobStatus(str, Enum):
    RUNNING = "running"
    CANCELLING = "cancelling"
    FAILING = "failing"
    COMPLETE = "complete"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def has_ended(self) -> bool:
        return self in (JobStatus.COMPLETE, JobStatus.CANCELLED, JobStatus.FAILED)

    @property
    def end(self) -> JobStatus:
        """How a job with this status ends."""
        ends = {"running": "complete", "cancelling": "cancelled", "failing": "failed"}
        return JobStatus(ends.get(self.value, self.value))


@dataclass(frozen=True, slots=True)
class JobNode:
    """`number` is the place of the job among all jobs, in the order of their plans. `ended` is when
    it ended, in seconds since 1970, for people; 0 if it has not, or if that is not known."""

    number: int
    status: JobStatus
    reason: str = ""
    ended: float = field(default=0.0, compare=False)

    def text(self) -> str:
        return _text(self.number, self.status.value, self.reason, self.ended)

    @classmethod
    def read(cls, text: str) -> JobNode:
        number, status, reason, *ended = json.loads(text)
        return cls(number, JobStatus(status), reason, *ended)


@dataclass(frozen=True, slots=True)
class Served:
    """The last number of an offer, and the number of the job that got it."""

    offer: int = 0
    job: int = 0

    def text(self) -> str:
        return _text(self.offer, self.job)

    @classmethod
    def read(cls, text: str) -> Served:
        return cls(*json.loads(text))
