"""Sequential parts in NATS: their records, and queues that are read in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pyrite.durable.protocol.exactness.commits import Commit, Record, Stored
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.queues.checks import check_follows, check_is_last
from pyrite.durable.queues.nats.envelopes import (
    Range,
    StoredRecord,
    read_envelope,
    read_stored_record,
)
from pyrite.durable.queues.nats.jetstream import Stale
from pyrite.durable.queues.nats.jobs import SPAN, Job, new_id, sequence_of
from pyrite.durable.queues.nats.news import News
from pyrite.durable.queues.nats.streams import Stream
from pyrite.durable.queues.nats.writing import (
    Staged,
    announce,
    check,
    check_home,
    message_of,
    puts_of,
    stage,
    write_elsewhere,
)
from pyrite.durable.queues.queues import MOST_READ, Delivery, Outgoing, Refused
from pyrite.durable.queues.texts import read_record, record_text

SWEEP_EVERY: Final = 64
"""Commits between two purges of what was committed."""


@dataclass(slots=True)
class _Part:
    """What this object knows of a sequential part that it commits. What was staged counts only as
    long as no other commit follows the record."""

    last: Stored | None = None
    stored: StoredRecord = field(default_factory=lambda: StoredRecord(""))
    staged: dict[str, Staged] = field(default_factory=dict)
    pointers: dict[tuple[int, int], set[tuple[int, Range]]] = field(default_factory=dict)
    commits: int = 0


class SequentialParts:
    def __init__(self, news: News) -> None:
        self._news = news
        self._parts: dict[tuple[str, int], _Part] = {}

    def forget(self, job: str) -> None:
        for key in [key for key in self._parts if key[0] == job]:
            del self._parts[key]

    async def record(self, job: Job, part: Part) -> Stored:
        number = job.numbers.part(part)
        known = self._parts.setdefault((job.name, number), _Part())
        item = await job.streams[job.home(part)].last(f"r.{number}")
        sequence = item.sequence if item else 0
        if known.last is not None and known.last.sequence != sequence:
            known.staged.clear()
        known.stored = read_stored_record(item.data) if item else StoredRecord("")
        record = read_record(known.stored.record) if item else Record()
        known.last = Stored(sequence, record)
        return known.last

    async def state(self, job: Job, part: Part, record: Stored) -> bytes:
        last = await self.record(job, part)
        check_is_last(part, record, last)
        stored = self._parts[job.name, job.numbers.part(part)].stored
        stream = job.streams[job.home(part)]
        if stored.long:
            return await stream.whole(stored.long)
        if not stored.at:
            return stored.state
        item = await stream.at(stored.at)
        if item is None:
            raise Refused(f"the state of record {record.sequence} of {part} was deleted meanwhile")
        return read_stored_record(item.data).state

    async def read(
        self, job: Job, part: Part, edge: str, server: int, position: int, limit: int
    ) -> list[Delivery]:
        queue = job.numbers.queue(part, edge)
        stream = job.streams[server]
        first, offset = divmod(position, SPAN)
        self._news.expect_none(job, queue)
        found: list[Delivery] = []
        size = 0
        while len(found) < limit:
            wanted = limit - len(found)
            items = await stream.read(f"q.{queue}", first, wanted)
            for sequence, data in items:
                if len(found) == limit or size >= MOST_READ:
                    break
                envelope = read_envelope(data)
                if envelope.staged is None:
                    message = await message_of(job, stream, envelope)
                    size += len(message.body)
                    found.append(Delivery(part, server, sequence_of(sequence), message))
                    continue
                self._note_pointer(job, part, queue, server, sequence, envelope.staged)
                start = envelope.staged.first + (offset if sequence == first else 0)
                number = 0
                for number, inner in await stream.range(envelope.staged, start, limit - len(found)):
                    message = await message_of(job, stream, read_envelope(inner))
                    behind = number - envelope.staged.first
                    is_last = number == envelope.staged.last
                    place = sequence_of(sequence, None if is_last else behind)
                    found.append(Delivery(part, server, place, message))
                    size += len(message.body)
                    if size >= MOST_READ:
                        break
                if number != envelope.staged.last:
                    break  # the limit is reached, or a server that lags behind has answered
            else:
                if len(items) == wanted:
                    first, offset = items[-1].sequence + 1, 0
                    continue
            break
        if found:
            self._news.expect(job, queue)
        return found

    def _note_pointer(
        self, job: Job, part: Part, queue: int, server: int, sequence: int, staged: Range
    ) -> None:
        known = self._parts.setdefault((job.name, job.numbers.part(part)), _Part())
        known.pointers.setdefault((queue, server), set()).add((sequence, staged))

    async def stage(self, job: Job, part: Part, attempt: str, outgoing: Sequence[Outgoing]) -> None:
        number = job.numbers.part(part)
        home = job.home(part)
        check(job, outgoing)
        check_home(job, outgoing, home)
        known = self._parts.setdefault((job.name, number), _Part())
        if known.last is None:
            await self.record(job, part)
        staged = known.staged.setdefault(attempt, Staged(f"{number}.{new_id()}"))
        await stage(job, job.streams[home], staged, outgoing)

    async def commit(
        self,
        job: Job,
        part: Part,
        commit: Commit,
        outgoing: Sequence[Outgoing],
        state: bytes | None,
    ) -> Stored:
        number = job.numbers.part(part)
        check(job, outgoing)
        home = job.home(part)
        stream = job.streams[home]
        known = self._parts.setdefault((job.name, number), _Part())
        last, before = known.last, known.stored
        if last is None or last.sequence != commit.follows:
            last = await self.record(job, part)
            before = known.stored
        check_follows(part, last, commit)
        attempt = commit.record.attempt
        here = await write_elsewhere(job, home, outgoing)
        staged = known.staged.get(attempt) or Staged(f"{number}.{new_id()}")
        puts = await puts_of(job, stream, staged, here)
        stored = await self._stored_record(stream, commit.record, state, last, before)
        puts.append(stream.put(f"r.{number}", stored.data(), expected=commit.follows))

        async def done() -> int | None:
            found = await self.record(job, part)
            return found.sequence if found.record.attempt == attempt else None

        try:
            sequence = await stream.commit(puts, done)
        except Stale as error:
            check_follows(part, await self.record(job, part), commit)
            raise Refused(f"commit {attempt!r} of {part} was refused: {error}") from error
        known.last, known.stored = Stored(sequence, commit.record), stored
        await announce(job, home, here)
        await self._clean(job, part, last, before, commit.record)
        return known.last

    async def _stored_record(
        self, stream: Stream, record: Record, state: bytes | None, last: Stored, old: StoredRecord
    ) -> StoredRecord:
        text = record_text(record)
        if state is None:
            return StoredRecord(text, at=last.sequence if old.is_here else old.at, long=old.long)
        if len(state) + len(text) <= stream.server.most_bytes:
            return StoredRecord(text, state, is_here=True)
        return StoredRecord(text, long=await stream.put_long(f"b.{new_id()}", state))

    async def _clean(
        self, job: Job, part: Part, last: Stored, before: StoredRecord, record: Record
    ) -> None:
        """Deletes what nobody needs after a commit. If it fails, the next one does it."""
        number = job.numbers.part(part)
        known = self._parts[job.name, number]
        stream = job.streams[job.home(part)]
        for attempt, staged in known.staged.items():
            if attempt != record.attempt:
                await stream.purge_later(f"s.{staged.place}.*")
        known.staged.clear()
        if record.epoch != last.record.epoch:
            await self._drop_unpublished(stream, number)
        if before.long and before.long != known.stored.long:
            await stream.purge_later(before.long.subject)
        known.commits += 1
        if known.commits % SWEEP_EVERY and not record.is_over:
            return
        assert known.last
        await stream.purge_later(f"r.{number}", below=known.stored.at or known.last.sequence)
        for (edge, server), position in record.positions.items():
            queue, passed = job.numbers.queue(part, edge), position // SPAN
            await job.streams[server].purge_later(f"q.{queue}", below=passed)
            pointers = known.pointers.get((queue, server), set())
            for pointer in [pointer for pointer in pointers if pointer[0] < passed]:
                await job.streams[server].purge_later(pointer[1].subject)
                pointers.discard(pointer)

    async def _drop_unpublished(self, stream: Stream, part: int) -> None:
        """A peer before may have died while it staged."""
        _, staged = await stream.info(f"s.{part}.>")
        if staged:
            _, published = await stream.info(f"p.{part}.*")
            kept = {name.split(".")[2] for name in published}
            for place in {name.split(".")[2] for name in staged} - kept:
                await stream.purge_later(f"s.{part}.{place}.*")
