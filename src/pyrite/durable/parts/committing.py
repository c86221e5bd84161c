"""Commits of a part: each with an attempt of its own, repeated until it is known whether it
counts."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from pyrite.durable.protocol.exactness.commits import (
    Commit,
    Next,
    Record,
    Stored,
    after_no_answer,
    taken_over,
)
from pyrite.durable.protocol.exactness.sentinels import End, Sentinel, seal_targets
from pyrite.durable.protocol.workflow import Part, Upstream, Workflow
from pyrite.durable.queues.queues import Message, Outgoing, Queues, Refused


class PartStopped(Exception):
    """The part is not this peer's any more. What was not committed is somebody else's to do."""


def new_attempt() -> str:
    return secrets.token_hex(8)


def commit(
    queues: Queues, part: Part, asked: Commit, outgoing: Sequence[Outgoing], state: bytes | None
) -> Stored:
    """Raises PartStopped if the part belongs to another peer."""
    while True:
        try:
            return queues.commit(part, asked, outgoing, state=state)
        except Refused:
            last = queues.record(part)
            match after_no_answer(last, asked):
                case Next.DONE:
                    return last
                case Next.STOP:
                    raise PartStopped(f"{part} was given to another peer") from None


def take_part_over(queues: Queues, part: Part, offer: int) -> Stored:
    """Writes the epoch of this peer into the record of a part. From then on no peer with an earlier
    offer can commit."""
    asked = taken_over(queues.record(part), epoch=offer, attempt=new_attempt())
    return commit(queues, part, asked, (), None)


def write_sentinels(queues: Queues, workflow: Workflow, part: Part, offer: int) -> None:
    """Tells all readers of a part that nothing more comes. A second sentinel changes nothing, so
    this may be repeated."""
    upstream = Upstream(part.task, part.member)
    outgoing = [
        Outgoing(
            target.part,
            Message(target.edge, sentinel=Sentinel(End(target.edge, upstream))),
            target.server,
        )
        for target in seal_targets(workflow, part, servers=queues.servers, home=queues.home(part))
    ]
    last = queues.record(part)
    # Several peers may be on a concurrent part, and any of them may be the one that seals.
    epoch = max(offer, last.record.epoch)
    if workflow.by_name[part.task].kind == "sequential" and epoch > offer:
        raise PartStopped(f"{part} was given to another peer")
    record: Record = replace(last.record, epoch=epoch, attempt=new_attempt())
    commit(queues, part, Commit(last.sequence, record), outgoing, None)
