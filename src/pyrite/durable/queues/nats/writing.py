"""How messages are written for a commit, and read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pyrite.durable.queues.checks import check_outgoing
from pyrite.durable.queues.nats.envelopes import Envelope, Range
from pyrite.durable.queues.nats.jetstream import Put
from pyrite.durable.queues.nats.jobs import Job, new_id
from pyrite.durable.queues.nats.streams import PUT_BYTES, Stream
from pyrite.durable.queues.queues import Message, Outgoing, QueuesError
from pyrite.durable.queues.texts import read_sentinel, sentinel_text

MOST_BYTES: Final = 16 * 1024 * 1024
DIRECT: Final = 800
"""More messages than these are staged, so that a batch has room for markers."""


@dataclass(slots=True)
class Staged:
    """What was staged for one commit, by queue. `place` is the end of the subjects."""

    place: str
    ranges: dict[int, Range] = field(default_factory=dict)


def check(job: Job, outgoing: Sequence[Outgoing]) -> None:
    check_outgoing(job.name, outgoing, most_bytes=MOST_BYTES, servers=len(job.streams))


async def stage(job: Job, stream: Stream, staged: Staged, outgoing: Sequence[Outgoing]) -> None:
    lasts = {range.subject: range.last for range in staged.ranges.values()}
    queues = [job.numbers.queue(out.part, out.message.edge) for out in outgoing]
    items = [
        (f"s.{staged.place}.{queue}", await _data(job, stream, out))
        for queue, out in zip(queues, outgoing)
    ]
    for queue, sequence in zip(queues, await stream.put_all(items, lasts)):
        before = staged.ranges.get(queue)
        first = before.first if before else sequence
        staged.ranges[queue] = Range(f"s.{staged.place}.{queue}", first, sequence)


async def write_elsewhere(job: Job, home: int, outgoing: Sequence[Outgoing]) -> list[Outgoing]:
    """Writes the sentinels for other servers before the commit, because no batch spans two
    servers; returns what is left. A second sentinel ends nothing twice, so a repeat is
    harmless."""
    check_home(job, [out for out in outgoing if out.message.sentinel is None], home)
    for server in range(len(job.streams)):
        there = [out for out in outgoing if out.server == server != home]
        if there:
            stream = job.streams[server]
            for out in there:
                subject, data = await item_of(job, stream, out)
                await stream.commit([stream.put(subject, data)], _never)
            await announce(job, server, there)
    return [out for out in outgoing if out.server in (None, home)]


def check_home(job: Job, outgoing: Sequence[Outgoing], home: int) -> None:
    for out in outgoing:
        if out.server not in (None, home):
            raise QueuesError(
                f"a commit of job {job.name!r} on server {home} has a message to {out.part} on"
                f" server {out.server}; only sentinels may go to other servers. This is a bug"
                " of Pyrite: please report it"
            )


async def puts_of(
    job: Job, stream: Stream, staged: Staged, outgoing: Sequence[Outgoing]
) -> list[Put]:
    """What a commit writes so that these messages can be read, after those staged."""
    size = sum(len(out.message.body) for out in outgoing)
    if len(outgoing) + len(staged.ranges) > DIRECT or size > PUT_BYTES:
        await stage(job, stream, staged, outgoing)
        outgoing = ()
    puts = [
        stream.put(subject_of(job, queue), Envelope(0, staged=range).data())
        for queue, range in staged.ranges.items()
    ]
    if staged.ranges:
        puts.append(stream.put(f"p.{staged.place}", b""))
    return puts + [stream.put(*await item_of(job, stream, out)) for out in outgoing]


async def item_of(job: Job, stream: Stream, out: Outgoing) -> tuple[str, bytes]:
    queue = job.numbers.queue(out.part, out.message.edge)
    return subject_of(job, queue), await _data(job, stream, out)


def subject_of(job: Job, queue: int) -> str:
    is_shared = queue in job.numbers.shared
    return f"q.{queue}.{new_id()}" if is_shared else f"q.{queue}"


async def _data(job: Job, stream: Stream, out: Outgoing) -> bytes:
    edge = job.numbers.edge_numbers[out.message.edge]
    sentinel = sentinel_text(out.message.sentinel) if out.message.sentinel else None
    if len(out.message.body) <= stream.server.most_bytes:
        return Envelope(edge, out.message.body, sentinel).data()
    long = await stream.put_long(f"b.{new_id()}", out.message.body)
    return Envelope(edge, sentinel=sentinel, long=long).data()


async def message_of(job: Job, stream: Stream, envelope: Envelope) -> Message:
    body = await stream.whole(envelope.long) if envelope.long else envelope.body
    sentinel = envelope.sentinel
    return Message(
        job.numbers.edges[envelope.edge], body, read_sentinel(sentinel) if sentinel else None
    )


async def announce(job: Job, server: int, outgoing: Sequence[Outgoing]) -> None:
    stream = job.streams[server]
    for queue in {job.numbers.queue(out.part, out.message.edge) for out in outgoing}:
        await stream.server.tell(f"{stream.news}.{queue}")


async def _never() -> None:
    """Of what may be stored twice nobody needs to know whether it was."""
