"""The record of a sequential part, and which commits may follow it.

A commit makes positions, state and output visible in one step. It names the record that it follows,
and is refused if that is not the last one. So neither a peer that lost the part nor a late retry of
the peer's own can commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from pyrite.durable.protocol.exactness.reading import Came
from pyrite.durable.protocol.states import ProtocolError


@dataclass(frozen=True, slots=True)
class Record:
    """What a commit of a part says.

    `epoch` is the number of the offer under which the peer works. `attempt` is new for each commit;
    its retries keep it. `positions` has the next message to read by edge and server. `state` points
    to the state of the processors. `ended` has the sentinels that came, `finished` the processors
    whose `complete` is over. `is_over` is True when the part has nothing left to do but to seal.
    """

    epoch: int = 0
    attempt: str = ""
    positions: Mapping[tuple[str, int], int] = field(default_factory=dict)
    state: str = ""
    ended: frozenset[Came] = frozenset()
    finished: frozenset[int] = frozenset()
    reports: tuple[str, ...] = ()
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """The last record of a part, with the sequence that the store gave it."""

    sequence: int
    record: Record


@dataclass(frozen=True, slots=True)
class Commit:
    """A record to be stored, and the sequence of the one that it follows."""

    follows: int
    record: Record


def taken_over(last: Stored, *, epoch: int, attempt: str) -> Commit:
    """What a peer commits first when it takes a part over. From then on no peer with an earlier
    offer can commit."""
    return Commit(last.sequence, replace(last.record, epoch=epoch, attempt=attempt))


class Answer(Enum):
    ACCEPTED = "the commit is now the record"
    EPOCH_IS_OVER = "a peer with a later offer has the part"
    NOT_THE_LAST = "the commit follows a record that is not the last one"


def may_follow(last: Stored, commit: Commit) -> Answer:
    """The fence. A store decides this and stores the commit in one step.

    Raises if the commit takes back what the record says: the peer has a bug.
    """
    if commit.record.epoch < last.record.epoch:
        return Answer.EPOCH_IS_OVER
    if commit.follows != last.sequence:
        return Answer.NOT_THE_LAST
    contradictions = list(_contradictions(last.record, commit.record))
    if contradictions:
        raise ProtocolError(
            f"commit {commit.record.attempt!r} contradicts record {last.sequence}, which it"
            f" follows: {'; '.join(contradictions)}. This is a bug of Pyrite: please report it"
        )
    return Answer.ACCEPTED


def _contradictions(last: Record, record: Record) -> Iterator[str]:
    for place, position in last.positions.items():
        if record.positions.get(place, 0) < position:
            yield f"the position at {place} goes back"
    if not last.ended <= record.ended:
        yield "an edge that has ended is open again"
    if not last.finished <= record.finished:
        yield "a processor that has finished runs again"
    if last.is_over and not record.is_over:
        yield "a part that was over goes on"


class Next(Enum):
    DONE = "the commit is in the record: go on"
    RETRY = "nothing has happened: send the same commit with the same attempt again"
    STOP = "the part is not ours any more: wait for a new offer"


def after_no_answer(last: Stored, commit: Commit) -> Next:
    """What a peer does after a refusal or a time-out, when it has read the record."""
    if last.record.attempt == commit.record.attempt:
        return Next.DONE
    return Next.RETRY if may_follow(last, commit) is Answer.ACCEPTED else Next.STOP


def is_done(marker: str | None) -> bool:
    """The same for a message of a concurrent task, whose commit writes a done marker, the attempt.
    If there is one, whosever it is, the output is there too: the message is only to be acked. Else
    the commit can be sent, or sent again."""
    return marker is not None
