"""The interface of durable queues. All kinds do the same; one set of tests says what.

Each part of a sequential task has one queue per inbound edge, which is read by sequence and in
order. A concurrent part has one queue for all its edges, from which any number of peers take
messages. A queue may be spread over several servers; each has sequences of its own.

One thread uses a `Queues` object.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from pyrite.durable.protocol.exactness.commits import Commit, Stored
from pyrite.durable.protocol.exactness.sentinels import Sentinel
from pyrite.durable.protocol.exactness.tails import Count
from pyrite.durable.protocol.workflow import Part, Workflow
from pyrite.errors import PyriteError

PATIENCE: Final = 30.0
"""Seconds."""
MOST_READ: Final = 16 << 20
"""Bytes: what is read or taken at a time ends with the message that reaches them."""


class QueuesError(PyriteError):
    """The queues cannot be used. The message says why, and what to do."""


class QueuesGone(QueuesError):
    """The queues of a job are not there: it has ended, or they were deleted."""


class Refused(QueuesError):
    """A commit was refused: the part belongs to another peer, or the commit is one's own, but late.
    Read the record; see `commits.after_no_answer`."""


@dataclass(frozen=True, slots=True)
class Message:
    """A batch of segments of one inbound edge of a part, or a sentinel, which has no body."""

    edge: str
    body: bytes = b""
    sentinel: Sentinel | None = None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message and the part that reads it. `server` is None for the server of the commit; the
    sentinels of a sequential reader name each server; see `sentinels.seal_targets`. Nothing but
    sentinels may name another server than that of the commit. No step spans two servers, so these
    are written before it: a commit that fails may leave some, and its retry writes them again. The
    first messages of a job that name no server are spread by `open_job`."""

    part: Part
    message: Message
    server: int | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message of a queue, as a peer got it. `handle` is the queues' own. `tries` is how often the
    message was delivered before."""

    part: Part
    server: int
    sequence: int
    message: Message
    tries: int = 0
    handle: object = None


@dataclass(frozen=True, slots=True)
class Length:
    """How much waits on an inbound edge of a task, in all its parts and on all servers, for people.
    The edges of a concurrent task have one queue. The marks that end an edge count as messages, and
    so does what a commit that has just been done has not deleted yet."""

    task: str
    edges: tuple[str, ...]
    messages: int
    in_flight: int = 0
    """How many of these a peer works on; a sequential task has none of that kind."""


class Queues(Protocol):
    servers: int
    most_bytes: int
    """No message may have a longer body."""

    # The life of a job's queues

    def open_job(
        self, job: str, workflow: Workflow, first: Iterable[Outgoing], *, code: bytes
    ) -> None:
        """Makes the queues of a job and puts the first messages in: the splits of its sources, and
        the sentinels that end them. `code` is what peers need to run the job; it may be longer than
        `most_bytes`. If it raises or its process dies, the job has not begun: `close_job` removes
        what is there."""

    def code(self, job: str) -> bytes:
        """What `open_job` was given."""

    def close_job(self, job: str) -> None:
        """Deletes the queues, records, markers and staged messages of a job. No error if it is not
        there."""

    def jobs(self) -> list[str]:
        """The jobs that have queues here."""

    def home(self, part: Part) -> int:
        """The server where a part commits: always the same for the same part."""

    def lengths(self, job: str) -> list[Length]:
        """How long the queues of a job are, in the order of its workflow."""

    # Sequential parts

    def record(self, part: Part) -> Stored:
        """The last record of a part. Before the first commit: sequence 0 and an empty record."""

    def state(self, part: Part, record: Stored) -> bytes:
        """The state of the processors that was stored with a record; empty if none was."""

    def read(
        self, part: Part, edge: str, server: int, position: int, *, limit: int
    ) -> list[Delivery]:
        """Up to `limit` messages, and about MOST_READ bytes, from a position on, in order.
        Positions begin at 0 (or at the first sequence of the queue). The position after a message
        is its sequence + 1."""

    def stage(self, part: Part, attempt: str, outgoing: Sequence[Outgoing]) -> None:
        """Stores messages that nobody sees until a commit of the same attempt publishes them. What
        other attempts of the part have staged is removed with the next commit of the part, or with
        the job. Only the object that has staged can commit it."""

    def commit(
        self, part: Part, commit: Commit, outgoing: Sequence[Outgoing], *, state: bytes | None
    ) -> Stored:
        """In one step: the record becomes the last one, and the messages become visible in their
        order, those that were staged under the record's attempt first. `state` None keeps the
        state of the record before. What the positions have passed may be deleted. Raises Refused if
        `commits.may_follow` says so; then nothing has changed."""

    # Concurrent parts

    def take(self, part: Part, *, owner: str, limit: int) -> list[Delivery]:
        """Up to `limit` messages, and about MOST_READ bytes, the oldest first, which are in flight
        until they are committed, given back, or their owner dies. They come from all servers."""

    def keep(self, deliveries: Sequence[Delivery]) -> None:
        """Tells that the owner still works on these. To be called every second or so."""

    def commit_taken(
        self, deliveries: Sequence[Delivery], attempt: str, outgoing: Sequence[Outgoing]
    ) -> bool:
        """In one step: a done marker for each message, and the outgoing messages become visible.
        False, and no change, if one of the messages has a marker already, unless it is of the same
        attempt of this object. All deliveries, at most 200, are of one part and one server. The
        messages leave the queue."""

    def drop_done(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Removes those that have a done marker already, and returns the others."""

    def give_back(self, deliveries: Sequence[Delivery], *, after: float = 0.0) -> None:
        """They are pending again, for anybody, at the earliest after so many seconds."""

    def counts(self, part: Part) -> list[Count]:
        """What each server holds of a queue that was neither committed nor dropped. What was given
        back may be counted as in flight until it is delivered again."""

    # Both

    def wait(self, parts: Sequence[Part], timeout: float) -> None:
        """Returns when a message may have come for one of these parts, or after so many seconds. It
        may return earlier."""

    def close(self) -> None:
        """What is in flight stays so until its owner is found dead, or is given back."""
