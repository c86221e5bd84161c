"""Concurrent parts in NATS: a consumer delivers each message to one peer, and again if that peer
says nothing more; the markers of commits let only one of them count."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

from nats.aio.msg import Msg

from pyrite.durable.protocol.exactness.tails import Count
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.queues.nats.envelopes import Envelope, Range, read_envelope
from pyrite.durable.queues.nats.jetstream import LONGEST_BATCH, JetStream, Put, Stale
from pyrite.durable.queues.nats.jobs import Job, new_id, sequence_of
from pyrite.durable.queues.nats.news import News
from pyrite.durable.queues.nats.streams import PUTS, Stream
from pyrite.durable.queues.nats.writing import (
    DIRECT,
    Staged,
    announce,
    check,
    message_of,
    puts_of,
    subject_of,
    write_elsewhere,
)
from pyrite.durable.queues.queues import MOST_READ, Delivery, Outgoing, QueuesError

SWEEP_EVERY: Final = 64
"""Commits between two purges of what was committed."""
REMEMBERED: Final = 1000
"""So many attempts of this object are known to be done, even if their markers are deleted."""
FEW: Final = 200
"""If there are more messages than these, this is not the end, and no exact count is needed."""
SOON: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Taken:
    """The handle of a delivery."""

    queue: int
    id: str
    sequence: int
    reply: str
    long: Range | None

    @property
    def subject(self) -> str:
        return f"q.{self.queue}.{self.id}"

    @property
    def marker(self) -> str:
        return f"d.{self.queue}.{self.id}"


class ConcurrentParts:
    def __init__(self, news: News) -> None:
        self._news = news
        self._done: OrderedDict[str, None] = OrderedDict()
        self._acks: set[asyncio.Task[None]] = set()
        self._commits: dict[tuple[str, int, int], int] = {}
        self._turn = count()

    def forget(self, job: str) -> None:
        for key in [key for key in self._commits if key[0] == job]:
            del self._commits[key]

    async def take(self, job: Job, part: Part, limit: int) -> list[Delivery]:
        queue = job.numbers.shared_queue(part)
        self._news.expect_none(job, queue)
        found: list[Delivery] = []
        turn, size = next(self._turn), 0
        for place in range(len(job.streams)):
            server = (place + turn) % len(job.streams)
            stream = job.streams[server]
            while len(found) < limit and size < MOST_READ:
                messages = await stream.pull(queue, limit - len(found))
                if not messages:
                    break
                for message in messages:
                    if size >= MOST_READ:  # for the next one who takes messages
                        await stream.server.confirmed(message.reply, _back_after(0.0))
                        await stream.server.tell(f"{stream.news}.{queue}")
                        continue
                    envelope = read_envelope(message.data)
                    taken, tries = _taken(queue, message, envelope)
                    if envelope.staged:
                        await self._expand(job, stream, taken, envelope.staged)
                        continue
                    try:
                        content = await message_of(job, stream, envelope)
                    except QueuesError:
                        if await self._not_done(stream, [taken]):
                            raise
                        continue  # its long body was deleted with the commit of another peer
                    sequence = sequence_of(taken.sequence)
                    found.append(Delivery(part, server, sequence, content, tries, taken))
                    size += len(content.body)
        if found:
            self._news.expect(job, queue)
        return found

    async def _expand(self, job: Job, stream: Stream, taken: _Taken, staged: Range) -> None:
        """Puts the messages in place of the one that stands for them, in one step."""
        items = await stream.range(staged, staged.first, DIRECT)
        if not items:  # another peer has done it, or a server that lags behind has answered
            if await self._not_done(stream, [taken]):
                await stream.server.confirmed(taken.reply, _back_after(SOON))
            return
        puts = [stream.put(subject_of(job, taken.queue), item.data) for item in items]
        is_all = items[-1].sequence == staged.last
        if not is_all:
            rest = Range(staged.subject, items[-1].sequence + 1, staged.last)
            subject = subject_of(job, taken.queue)
            puts.append(stream.put(subject, Envelope(0, staged=rest).data()))
        if await self._commit_with_markers(stream, [taken], puts, f"expand {new_id()}") and is_all:
            await stream.purge_later(staged.subject)

    async def keep(self, servers: Sequence[JetStream], deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            await servers[delivery.server].tell(_handle(delivery).reply, b"+WPI")
        for server in {delivery.server for delivery in deliveries}:
            await servers[server].flush()

    async def commit(
        self, job: Job, deliveries: Sequence[Delivery], attempt: str, outgoing: Sequence[Outgoing]
    ) -> bool:
        server = deliveries[0].server
        stream = job.streams[server]
        if attempt in self._done:
            await stream.info()  # raises if the job is gone
            return True
        check(job, outgoing)
        here = await write_elsewhere(job, server, outgoing)
        puts = await puts_of(job, stream, Staged(f"t.{new_id()}"), here)
        taken = [_handle(delivery) for delivery in deliveries]
        if not await self._commit_with_markers(stream, taken, puts, attempt):
            return False
        self._done[attempt] = None
        if len(self._done) > REMEMBERED:
            self._done.popitem(last=False)
        await announce(job, server, here)
        await self._sweep_sometimes(job, server, taken)
        return True

    async def _commit_with_markers(
        self, stream: Stream, taken: Sequence[_Taken], puts: list[Put], attempt: str
    ) -> bool:
        text = attempt.encode()
        puts += [stream.put(f"g.{taken[0].queue}", b"") for _ in taken[len(puts) :]]
        guarded = [
            replace(put, expected=one.sequence, expected_of=f"{stream.prefix}.{one.subject}")
            for one, put in zip(taken, puts)
        ]
        puts[: len(taken)] = guarded
        markers = [stream.put(one.marker, text, expected=0) for one in taken]
        if len(puts) + len(markers) > LONGEST_BATCH:
            raise QueuesError(
                f"a commit cannot have {len(taken):,} messages; commit at most"
                f" {LONGEST_BATCH - DIRECT} at once. This is a bug of Pyrite: please report it"
            )

        async def done() -> int | None:
            marker = await stream.last(taken[-1].marker)
            return marker.sequence if marker and marker.data == text else None

        is_ours = True
        try:
            await stream.commit([*puts, *markers], done)
        except Stale:
            is_ours = await done() is not None
        if is_ours:
            await self._ack_own(stream, taken)
        else:
            open = await self._not_done(stream, taken)
            await self._ack(stream, [one for one in taken if one not in open])
        return is_ours

    async def _ack(self, stream: Stream, taken: Sequence[_Taken]) -> None:
        """Only what is done is acked, so an ack that comes late harms nobody."""
        for one in taken:
            if one.long:
                await stream.purge_later(one.long.subject)
            await stream.server.tell(one.reply, b"+ACK")

    async def _ack_own(self, stream: Stream, taken: Sequence[_Taken]) -> None:
        """The last ack is confirmed, so that counts can wait for it: the server handles them in
        order."""
        await self._ack(stream, taken[:-1])
        task = asyncio.ensure_future(stream.server.confirmed(taken[-1].reply, b"+ACK"))
        self._acks.add(task)
        task.add_done_callback(self._acks.discard)
        if taken[-1].long:
            await stream.purge_later(taken[-1].long.subject)

    async def settle(self) -> None:
        if self._acks:
            await asyncio.wait(self._acks)

    async def _sweep_sometimes(self, job: Job, server: int, taken: Sequence[_Taken]) -> None:
        key = (job.name, server, taken[0].queue)
        self._commits[key] = self._commits.get(key, 0) + 1
        if self._commits[key] % SWEEP_EVERY == 0:
            info = await job.streams[server].consumer(taken[0].queue)
            await self._sweep(job.streams[server], taken[0].queue, info)

    async def _sweep(self, stream: Stream, queue: int, info: dict[str, Any]) -> None:
        """All messages up to the floor are acked, so they are done. Their markers have higher
        sequences; those up to the floor are of messages that are deleted by then."""
        floor = int(info["ack_floor"]["stream_seq"])
        if floor:
            await stream.purge(f"q.{queue}.*", below=floor + 1)
            await stream.purge(f"d.{queue}.*", below=floor + 1)
            await stream.purge(f"g.{queue}", below=floor + 1)

    async def _not_done(self, stream: Stream, taken: Sequence[_Taken]) -> list[_Taken]:
        """Those that have no done marker. A message that is not there is done, but only if the one
        who says so is not a server that lags behind."""
        found: set[str] = set()
        for at in range(0, len(taken), PUTS):
            some = taken[at : at + PUTS]
            found |= await stream.subjects([one.subject for one in some])
            found |= await stream.subjects([one.marker for one in some])
        left: list[_Taken] = []
        for one in taken:
            if one.subject not in found and one.marker not in found:
                last, names = await stream.info(f"*.{one.queue}.{one.id}")
                found |= set(names) if last >= one.sequence else {one.subject}
            if one.subject in found and one.marker not in found:
                left.append(one)
        return left

    async def drop_done(self, job: Job, deliveries: Sequence[Delivery]) -> list[Delivery]:
        left: set[_Taken] = set()
        for server in sorted({delivery.server for delivery in deliveries}):
            taken = [_handle(one) for one in deliveries if one.server == server]
            open = await self._not_done(job.streams[server], taken)
            await self._ack(job.streams[server], [one for one in taken if one not in open])
            left.update(open)
        return [one for one in deliveries if _handle(one) in left]

    async def give_back(self, job: Job, deliveries: Sequence[Delivery], after: float) -> None:
        for delivery in deliveries:
            stream = job.streams[delivery.server]
            await stream.server.confirmed(_handle(delivery).reply, _back_after(after))
        for server in {delivery.server for delivery in deliveries}:
            stream = job.streams[server]
            await stream.server.tell(f"{stream.news}.{_handle(deliveries[0]).queue}")

    async def counts(self, job: Job, part: Part) -> list[Count]:
        await self.settle()
        return [await self._count(job, part, stream) for stream in job.streams]

    async def _count(self, job: Job, part: Part, stream: Stream) -> Count:
        if part.task not in job.numbers.concurrent:
            raise QueuesError(f"{part} is not concurrent, so nothing of it is counted")
        queue = job.numbers.shared_queue(part)
        info = await stream.consumer(queue)
        pending, in_flight = int(info["num_pending"]), int(info["num_ack_pending"])
        if pending + in_flight > FEW:
            last, _ = await stream.info()
            return Count(pending, in_flight, sequence_of(last))
        # The consumer may be led by a server that lags behind the leader of the stream. So near the
        # end the messages themselves are counted.
        await self._sweep(stream, queue, info)
        last, names = await stream.info(f"*.{queue}.*")
        done = {name.partition(".")[2] for name in names if name.startswith("d.")}
        held = {name.partition(".")[2] for name in names if name.startswith("q.")} - done
        in_flight = min(in_flight, len(held))
        return Count(len(held) - in_flight, in_flight, sequence_of(last))


def _taken(queue: int, message: Msg, envelope: Envelope) -> tuple[_Taken, int]:
    """The handle of a message, and how often it was delivered before."""
    tokens = message.reply.split(".")
    delivered, sequence = tokens[4:6] if len(tokens) == 9 else tokens[6:8]
    id = message.subject.rpartition(".")[2]
    return _Taken(queue, id, int(sequence), message.reply, envelope.long), int(delivered) - 1


def _back_after(seconds: float) -> bytes:
    if seconds <= 0:
        return b"-NAK"
    return b"-NAK " + json.dumps({"delay": int(seconds * 1e9)}).encode()


def _handle(delivery: Delivery) -> _Taken:
    assert isinstance(delivery.handle, _Taken)
    return delivery.handle
