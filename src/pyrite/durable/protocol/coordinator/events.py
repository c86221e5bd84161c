"""What the coordinator reacts to, one at a time. A stale or repeated event is harmless."""

from __future__ import annotations

from dataclasses import dataclass

from pyrite.durable.protocol.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Plan:
    """A client submitted a job."""

    job: str
    workflow: Workflow


@dataclass(frozen=True, slots=True)
class Reject:
    """A client submitted a job that cannot run."""

    job: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """A client wants a job to stop."""

    job: str


@dataclass(frozen=True, slots=True)
class Born:
    peer: str


@dataclass(frozen=True, slots=True)
class Death:
    """The pulse of a peer is gone."""

    peer: str


@dataclass(frozen=True, slots=True)
class Shutdown:
    """A client wants a peer to stop."""

    peer: str


@dataclass(frozen=True, slots=True)
class Ack:
    """A peer takes its offer."""

    peer: str
    offer: int


@dataclass(frozen=True, slots=True)
class Revoke:
    """A peer has not acked its offer in time."""

    peer: str
    offer: int


@dataclass(frozen=True, slots=True)
class Seal:
    """A peer has reached the end of its input and asks whether it may seal. The answer is written
    to the exhaust node of the offer."""

    peer: str
    offer: int


@dataclass(frozen=True, slots=True)
class Complete:
    """A peer has sealed."""

    peer: str
    offer: int


@dataclass(frozen=True, slots=True)
class Fail:
    """A peer cannot go on: the job fails."""

    peer: str
    offer: int
    reason: str


@dataclass(frozen=True, slots=True)
class Evict:
    """The coordinator's own: a peer loses its part."""

    peer: str
    offer: int


@dataclass(frozen=True, slots=True)
class Offer:
    """The coordinator's own: idle peers get parts."""


@dataclass(frozen=True, slots=True)
class Collect:
    """The coordinator's own: nodes that nobody needs any more are deleted. It comes when no other
    event waits: the birth of a peer that was forgotten must not come again."""


Event = (
    Plan
    | Reject
    | Cancel
    | Born
    | Death
    | Shutdown
    | Ack
    | Revoke
    | Seal
    | Complete
    | Fail
    | Evict
    | Offer
    | Collect
)


def kind(event: Event) -> str:
    return type(event).__name__.lower()


def words(event: Event) -> tuple[str | int, ...]:
    """The event as it stands in the log, for people: the log also has all that it decided, so it is
    never decided again.

    >>> words(Ack("p1", 7))
    ('ack', 'p1', 7)
    """
    names = [name for name in event.__dataclass_fields__ if name != "workflow"]
    return (kind(event), *(getattr(event, name) for name in names))
