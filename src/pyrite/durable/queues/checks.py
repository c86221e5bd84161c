"""What all kinds of queues refuse, in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from pyrite.durable.protocol.exactness.commits import Answer, Commit, Stored, may_follow
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.queues.queues import Outgoing, QueuesError, QueuesGone, Refused


def check_follows(part: Part, last: Stored, commit: Commit) -> None:
    """The fence: raises Refused if the commit may not become the record."""
    answer = may_follow(last, commit)
    if answer is not Answer.ACCEPTED:
        raise Refused(
            f"commit {commit.record.attempt!r} of {part} was refused: {answer.value}. It has epoch"
            f" {commit.record.epoch} and follows record {commit.follows}; the last record is"
            f" {last.sequence} with epoch {last.record.epoch}"
        )


def check_is_last(part: Part, record: Stored, last: Stored) -> None:
    """Only the state of the last record is kept."""
    if record.sequence != last.sequence:
        raise Refused(
            f"the state of record {record.sequence} of {part} is gone, because record"
            f" {last.sequence} with epoch {last.record.epoch} has followed it"
        )


def check_outgoing(
    job: str, outgoing: Sequence[Outgoing], *, most_bytes: int, servers: int
) -> None:
    for out in outgoing:
        if len(out.message.body) > most_bytes:
            raise QueuesError(
                f"a message of edge {out.message.edge!r} to {out.part} has"
                f" {len(out.message.body):,} bytes, and {most_bytes:,} are allowed; make the items"
                " smaller, or emit a reference to a file instead"
            )
        if out.part.job != job or not (out.server is None or 0 <= out.server < servers):
            raise QueuesError(
                f"a commit of job {job!r} has a message to {out.part} on server {out.server} of"
                f" {servers}. This is a bug of Pyrite: please report it"
            )


def already_open(job: str) -> QueuesError:
    return QueuesError(f"job {job!r} has queues already; close it before you open it again")


def gone(job: str, where: object) -> QueuesGone:
    return QueuesGone(
        f"the queues of job {job!r} are not in {where}: the job has ended, or somebody has deleted"
        " them"
    )
