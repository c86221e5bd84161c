"""Durable queues in NATS JetStream: on one server or cluster, or spread over several.

Each job has a stream on each server; see `streams.py`. A commit is one atomic batch on one server.
What was confirmed outlives a kill of the server: it has given it to the kernel. Against power cuts
set `sync_interval: always` in the servers' configuration, or use clusters with replicas.
"""

from __future__ import annotations

import asyncio
import json
import os
import zlib
from collections import OrderedDict
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from nats.aio.msg import Msg

from pyrite.durable.protocol.exactness.commits import Commit, Record, Stored
from pyrite.durable.protocol.exactness.tails import Count
from pyrite.durable.protocol.workflow import Part, Workflow
from pyrite.durable.queues.checks import (
    already_open,
    check_follows,
    check_is_last,
    check_outgoing,
    gone,
)
from pyrite.durable.queues.envelopes import (
    Envelope,
    Range,
    StoredRecord,
    read_envelope,
    read_stored_record,
)
from pyrite.durable.queues.jetstream import (
    LONGEST_BATCH,
    NAME_IN_USE,
    ApiError,
    JetStream,
    Put,
    Stale,
    StreamGone,
)
from pyrite.durable.queues.numbering import Numbering, numbering
from pyrite.durable.queues.queues import Delivery, Message, Outgoing, QueuesError, Refused
from pyrite.durable.queues.streams import PUT_BYTES, PUTS, Stream, stream_prefix, token
from pyrite.durable.queues.texts import read_record, read_sentinel, record_text, sentinel_text

T = TypeVar("T")

PATIENCE: Final = 30.0
ACK_WAIT: Final = 6.0
MOST_BYTES: Final = 64 * 1024 * 1024
SPAN: Final = 1 << 40
"""The sequence of a message is that in the stream times SPAN, plus its place among the staged
messages for which one message stands. The last or only one has the last place, so the position
after it is that of the next message in the stream."""
DIRECT: Final = 800
"""More messages than these are staged, so that a batch has room for markers."""
SWEEP_EVERY: Final = 64
"""Commits between two purges of what was committed."""
NEWS_SECONDS: Final = 0.1
"""A wait looks so often by itself: news may be lost, and back-offs end without any."""
REMEMBERED: Final = 1000
FEW: Final = 200


@dataclass(frozen=True, slots=True)
class _Job:
    name: str
    numbers: Numbering
    streams: tuple[Stream, ...]


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


@dataclass(slots=True)
class _Part:
    """What this object knows of a sequential part that it commits."""

    last: Stored | None = None
    stored: StoredRecord = field(default_factory=lambda: StoredRecord(""))
    staged: dict[str, dict[int, Range]] = field(default_factory=dict)
    pointers: dict[tuple[int, int], list[tuple[int, Range]]] = field(default_factory=dict)
    commits: int = 0


class NatsQueues:
    """`urls` has for each server the addresses of it, or of the members of its cluster. `cluster`
    keeps the jobs of several deployments apart that use the same NATS. `ack_wait` is the time after
    which a message is delivered again if its owner does not call `keep`."""

    most_bytes = MOST_BYTES

    def __init__(
        self,
        urls: Sequence[Sequence[str]],
        *,
        cluster: str,
        replicas: int | None = None,
        patience: float = PATIENCE,
        ack_wait: float = ACK_WAIT,
    ) -> None:
        if not urls or not all(urls):
            raise QueuesError("queues in NATS need the URL of at least one server")
        self.servers = len(urls)
        self._cluster = cluster
        self._replicas = [replicas or (3 if len(members) >= 3 else 1) for members in urls]
        self._ack_wait = ack_wait
        self._jobs: dict[str, _Job] = {}
        self._parts: dict[tuple[str, int], _Part] = {}
        self._done: OrderedDict[str, None] = OrderedDict()
        self._acks: set[asyncio.Task[None]] = set()
        self._swept: dict[tuple[str, int, int], int] = {}
        self._news: dict[str, set[int]] = {}
        self._turn = count()
        self._loop = asyncio.new_event_loop()
        self._heard = asyncio.Event()
        self._connections = [JetStream(members, patience=patience) for members in urls]
        try:
            for connection in self._connections:
                self._loop.run_until_complete(connection.connect())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        await self._settle()
        for connection in self._connections:
            await connection.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _run(self, job: str, act: Coroutine[Any, Any, T]) -> T:
        """The thread that calls drives the connections, too: between calls they rest."""
        try:
            return self._loop.run_until_complete(act)
        except StreamGone as error:
            self._forget(job)
            raise gone(job, self._where) from error

    @property
    def _where(self) -> str:
        return " and ".join(", ".join(one.urls) for one in self._connections)

    def _forget(self, job: str) -> None:
        self._jobs.pop(job, None)
        for key in [key for key in self._parts if key[0] == job]:
            del self._parts[key]

    async def _job(self, name: str) -> _Job:
        job = self._jobs.get(name)
        if job is None:
            streams = self._streams(name)
            workflow = await streams[0].last("w")
            if workflow is None:
                raise StreamGone("the job has not begun")
            numbers = numbering(Workflow.read(workflow.data.decode()))
            job = self._jobs[name] = _Job(name, numbers, streams)
        return job

    def _streams(self, job: str) -> tuple[Stream, ...]:
        return tuple(Stream(server, self._cluster, job) for server in self._connections)

    # The life of a job's queues

    def open_job(
        self, job: str, workflow: Workflow, first: Iterable[Outgoing], *, code: bytes
    ) -> None:
        self._run(job, self._open_job(job, workflow, first, code))

    async def _open_job(
        self, name: str, workflow: Workflow, first: Iterable[Outgoing], code: bytes
    ) -> None:
        numbers = numbering(workflow)
        job = _Job(name, numbers, self._streams(name))
        shared = [numbers.shared_queue(Part(name, task, 0)) for task in numbers.concurrent]
        try:
            for stream, replicas in zip(job.streams, self._replicas):
                await stream.create(replicas=replicas, queues=shared, ack_wait=self._ack_wait)
        except ApiError as error:
            if error.number == NAME_IN_USE:
                raise already_open(name) from error
            raise
        await job.streams[0].put_long("c", code)
        await self._fill(job, first)
        text = workflow.text().encode()
        for stream in reversed(job.streams):
            await stream.put_all([("w", text)], {})
        self._jobs[name] = job

    async def _fill(self, job: _Job, first: Iterable[Outgoing]) -> None:
        """Messages without a server: those of concurrent parts are spread over all."""
        lasts: list[dict[str, int]] = [{} for _ in job.streams]
        waiting: list[list[tuple[str, bytes]]] = [[] for _ in job.streams]
        sizes = [0 for _ in job.streams]

        async def flush(server: int) -> None:
            items, waiting[server], sizes[server] = waiting[server], [], 0
            await job.streams[server].put_all(items, lasts[server])

        for number, out in enumerate(first):
            check_outgoing(job.name, [out], most_bytes=self.most_bytes, servers=self.servers)
            server = out.server
            if server is None:
                is_shared = out.part.task in job.numbers.concurrent
                server = number % self.servers if is_shared else self.home(out.part)
            item = await self._item(job, job.streams[server], out)
            waiting[server].append(item)
            sizes[server] += len(item[1])
            if len(waiting[server]) == PUTS or sizes[server] > PUT_BYTES:
                await flush(server)
        for server in range(self.servers):
            await flush(server)

    def code(self, job: str) -> bytes:
        async def get() -> bytes:
            stream = (await self._job(job)).streams[0]
            last = await stream.last("c")
            return await stream.whole(Range("c", 1, last.sequence if last else 0))

        return self._run(job, get())

    def close_job(self, job: str) -> None:
        async def delete() -> None:
            await self._settle()
            for stream in self._streams(job):
                try:
                    await stream.delete()
                except StreamGone:
                    pass

        self._run(job, delete())
        self._forget(job)

    def jobs(self) -> list[str]:
        return self._run("", self._names())

    async def _names(self) -> list[str]:
        prefix = stream_prefix(self._cluster)
        found: set[str] = set()
        for server in self._connections:
            offset = 0
            while True:
                page = await server.api("STREAM.NAMES", {"offset": offset})
                names = page.get("streams") or []
                found |= {unquote(name[len(prefix) :]) for name in names if name.startswith(prefix)}
                offset += len(names)
                if not names or offset >= page.get("total", 0):
                    break
        return sorted(found)

    def home(self, part: Part) -> int:
        return zlib.crc32(f"{part.job}/{part.task}/{part.member}".encode()) % self.servers

    # Sequential parts

    def record(self, part: Part) -> Stored:
        async def get() -> Stored:
            job = await self._job(part.job)
            return await self._last_record(job, part)

        return self._run(part.job, get())

    async def _last_record(self, job: _Job, part: Part) -> Stored:
        number = job.numbers.part(part)
        known = self._parts.setdefault((job.name, number), _Part())
        item = await job.streams[self.home(part)].last(f"r.{number}")
        if item is None:
            known.last, known.stored = Stored(0, Record()), StoredRecord("")
        else:
            known.stored = read_stored_record(item.data)
            known.last = Stored(item.sequence, read_record(known.stored.record))
        return known.last

    def state(self, part: Part, record: Stored) -> bytes:
        async def get() -> bytes:
            job = await self._job(part.job)
            last = await self._last_record(job, part)
            check_is_last(part, record, last)
            stored = self._parts[job.name, job.numbers.part(part)].stored
            stream = job.streams[self.home(part)]
            if stored.long:
                return await stream.whole(stored.long)
            if stored.at and (item := await stream.at(stored.at)):
                return read_stored_record(item.data).state
            return stored.state

        return self._run(part.job, get())

    def read(
        self, part: Part, edge: str, server: int, position: int, *, limit: int
    ) -> list[Delivery]:
        return self._run(part.job, self._read(part, edge, server, position, limit))

    async def _read(
        self, part: Part, edge: str, server: int, position: int, limit: int
    ) -> list[Delivery]:
        job = await self._job(part.job)
        queue = job.numbers.queue(part, edge)
        stream = job.streams[server]
        first, offset = divmod(position, SPAN)
        self._news.get(job.name, set()).discard(queue)
        found: list[Delivery] = []
        while len(found) < limit:
            wanted = limit - len(found)
            items = await stream.read(f"q.{queue}", first, wanted)
            for sequence, data in items:
                if len(found) == limit:
                    break
                envelope = read_envelope(data)
                if envelope.staged is None:
                    message = await self._message(job, stream, envelope)
                    found.append(Delivery(part, server, _sequence(sequence), message))
                    continue
                self._note_pointer(job, part, queue, server, sequence, envelope.staged)
                start = envelope.staged.first + (offset if sequence == first else 0)
                for number, inner in await stream.range(envelope.staged, start, limit - len(found)):
                    message = await self._message(job, stream, read_envelope(inner))
                    behind = number - envelope.staged.first
                    is_last = number == envelope.staged.last
                    place = _sequence(sequence, None if is_last else behind)
                    found.append(Delivery(part, server, place, message))
            if len(items) < wanted:
                break
            first, offset = items[-1].sequence + 1, 0
        return found

    def _note_pointer(
        self, job: _Job, part: Part, queue: int, server: int, sequence: int, staged: Range
    ) -> None:
        known = self._parts.setdefault((job.name, job.numbers.part(part)), _Part())
        known.pointers.setdefault((queue, server), []).append((sequence, staged))

    def stage(self, part: Part, attempt: str, outgoing: Sequence[Outgoing]) -> None:
        async def put() -> None:
            job = await self._job(part.job)
            number = job.numbers.part(part)
            check_outgoing(job.name, outgoing, most_bytes=self.most_bytes, servers=self.servers)
            known = self._parts.setdefault((job.name, number), _Part())
            staged = known.staged.setdefault(attempt, {})
            home = self.home(part)
            self._check_home(job, outgoing, home)
            place = f"{number}.{token(attempt)}"
            await self._stage(job, job.streams[home], place, staged, outgoing)

        self._run(part.job, put())

    async def _stage(
        self,
        job: _Job,
        stream: Stream,
        place: str,
        staged: dict[int, Range],
        outgoing: Sequence[Outgoing],
    ) -> None:
        lasts = {f"s.{place}.{queue}": range.last for queue, range in staged.items()}
        queues = [job.numbers.queue(out.part, out.message.edge) for out in outgoing]
        items = [
            (f"s.{place}.{queue}", await self._data(job, stream, out))
            for queue, out in zip(queues, outgoing)
        ]
        for queue, sequence in zip(queues, await stream.put_all(items, lasts)):
            first = staged[queue].first if queue in staged else sequence
            staged[queue] = Range(f"s.{place}.{queue}", first, sequence)

    def commit(
        self, part: Part, commit: Commit, outgoing: Sequence[Outgoing], *, state: bytes | None
    ) -> Stored:
        return self._run(part.job, self._commit(part, commit, outgoing, state))

    async def _commit(
        self, part: Part, commit: Commit, outgoing: Sequence[Outgoing], state: bytes | None
    ) -> Stored:
        job = await self._job(part.job)
        number = job.numbers.part(part)
        check_outgoing(job.name, outgoing, most_bytes=self.most_bytes, servers=self.servers)
        home = self.home(part)
        stream = job.streams[home]
        known = self._parts.setdefault((job.name, number), _Part())
        last, before = known.last, known.stored
        if last is None or last.sequence != commit.follows:
            last = await self._last_record(job, part)
            before = known.stored
        check_follows(part, last, commit)
        attempt = commit.record.attempt
        here = await self._tell_other_servers(job, home, outgoing)
        staged = known.staged.get(attempt, {})
        puts = await self._puts(job, stream, f"{number}.{token(attempt)}", staged, here)
        stored = await self._stored_record(stream, commit.record, state, last, before)
        puts.append(stream.put(f"r.{number}", stored.data(), expected=commit.follows))

        async def done() -> int | None:
            found = await self._last_record(job, part)
            return found.sequence if found.record.attempt == attempt else None

        try:
            sequence = await stream.commit(puts, done)
        except Stale as error:
            check_follows(part, await self._last_record(job, part), commit)
            raise Refused(f"commit {attempt!r} of {part} was refused: {error}") from error
        known.last, known.stored = Stored(sequence, commit.record), stored
        await self._tell(job, home, here)
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
        return StoredRecord(text, long=await stream.put_long(f"b.{_id()}", state))

    async def _clean(
        self, job: _Job, part: Part, last: Stored, before: StoredRecord, record: Record
    ) -> None:
        """Deletes what nobody needs after a commit. If it fails, the next one does it."""
        number = job.numbers.part(part)
        known = self._parts[job.name, number]
        stream = job.streams[self.home(part)]
        lost = [attempt for attempt in known.staged if attempt != record.attempt]
        known.staged.clear()
        for attempt in lost:
            await stream.purge_later(f"s.{number}.{token(attempt)}.*")
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
            pointers = known.pointers.pop((queue, server), [])
            for sequence, range in set(pointers):
                if sequence < passed:
                    await job.streams[server].purge_later(range.subject)
                else:
                    known.pointers.setdefault((queue, server), []).append((sequence, range))

    async def _drop_unpublished(self, stream: Stream, part: int) -> None:
        """A peer before may have died while it staged."""
        _, staged = await stream.info(f"s.{part}.>")
        if staged:
            _, published = await stream.info(f"p.{part}.*")
            kept = {name.split(".")[2] for name in published}
            for attempt in {name.split(".")[2] for name in staged} - kept:
                await stream.purge_later(f"s.{part}.{attempt}.*")

    # Messages

    async def _tell_other_servers(
        self, job: _Job, home: int, outgoing: Sequence[Outgoing]
    ) -> list[Outgoing]:
        """Writes the sentinels for other servers before the commit, because no batch spans two
        servers; returns what is left. A second sentinel ends nothing twice, so a repeat is
        harmless."""
        self._check_home(job, [out for out in outgoing if out.message.sentinel is None], home)
        for server in range(self.servers):
            there = [out for out in outgoing if out.server == server != home]
            if there:
                stream = job.streams[server]
                for out in there:
                    subject, data = await self._item(job, stream, out)
                    await stream.commit([stream.put(subject, data)], _never)
                await self._tell(job, server, there)
        return [out for out in outgoing if out.server in (None, home)]

    def _check_home(self, job: _Job, outgoing: Sequence[Outgoing], home: int) -> None:
        for out in outgoing:
            if out.server not in (None, home):
                raise QueuesError(
                    f"a commit of job {job.name!r} on server {home} has a message to {out.part} on"
                    f" server {out.server}; only sentinels may go to other servers. This is a bug"
                    " of Pyrite: please report it"
                )

    async def _puts(
        self,
        job: _Job,
        stream: Stream,
        place: str,
        staged: dict[int, Range],
        outgoing: Sequence[Outgoing],
    ) -> list[Put]:
        """What a commit writes so that these messages can be read, after those staged."""
        size = sum(len(out.message.body) for out in outgoing)
        if len(outgoing) + len(staged) > DIRECT or size > PUT_BYTES:
            await self._stage(job, stream, place, staged, outgoing)
            outgoing = ()
        puts = [
            stream.put(self._subject(job, queue), Envelope(0, staged=range).data())
            for queue, range in staged.items()
        ]
        if staged:
            puts.append(stream.put(f"p.{place}", b""))
        return puts + [stream.put(*await self._item(job, stream, out)) for out in outgoing]

    async def _item(self, job: _Job, stream: Stream, out: Outgoing) -> tuple[str, bytes]:
        queue = job.numbers.queue(out.part, out.message.edge)
        return self._subject(job, queue), await self._data(job, stream, out)

    def _subject(self, job: _Job, queue: int) -> str:
        is_shared = queue in job.numbers.shared
        return f"q.{queue}.{_id()}" if is_shared else f"q.{queue}"

    async def _data(self, job: _Job, stream: Stream, out: Outgoing) -> bytes:
        edge = job.numbers.edge_numbers[out.message.edge]
        sentinel = sentinel_text(out.message.sentinel) if out.message.sentinel else None
        if len(out.message.body) <= stream.server.most_bytes:
            return Envelope(edge, out.message.body, sentinel).data()
        long = await stream.put_long(f"b.{_id()}", out.message.body)
        return Envelope(edge, sentinel=sentinel, long=long).data()

    async def _message(self, job: _Job, stream: Stream, envelope: Envelope) -> Message:
        body = await stream.whole(envelope.long) if envelope.long else envelope.body
        sentinel = envelope.sentinel
        return Message(
            job.numbers.edges[envelope.edge], body, read_sentinel(sentinel) if sentinel else None
        )

    async def _tell(self, job: _Job, server: int, outgoing: Sequence[Outgoing]) -> None:
        stream = job.streams[server]
        for queue in {job.numbers.queue(out.part, out.message.edge) for out in outgoing}:
            await stream.server.tell(f"{stream.news}.{queue}")

    # Concurrent parts

    def take(self, part: Part, *, owner: str, limit: int) -> list[Delivery]:
        return self._run(part.job, self._take(part, limit))

    async def _take(self, part: Part, limit: int) -> list[Delivery]:
        job = await self._job(part.job)
        queue = job.numbers.shared_queue(part)
        self._news.get(job.name, set()).discard(queue)
        found: list[Delivery] = []
        turn = next(self._turn)
        for place in range(self.servers):
            server = (place + turn) % self.servers
            stream = job.streams[server]
            while len(found) < limit:
                messages = await stream.pull(queue, limit - len(found))
                if not messages:
                    break
                for message in messages:
                    envelope = read_envelope(message.data)
                    taken, tries = _taken(queue, message, envelope)
                    if envelope.staged:
                        await self._expand(job, stream, taken, envelope.staged)
                        continue
                    sequence = _sequence(taken.sequence)
                    content = await self._message(job, stream, envelope)
                    found.append(Delivery(part, server, sequence, content, tries, taken))
        return found

    async def _expand(self, job: _Job, stream: Stream, taken: _Taken, staged: Range) -> None:
        """Puts the messages in place of the one that stands for them, in one step."""
        items = await stream.range(staged, staged.first, DIRECT)
        puts = [stream.put(self._subject(job, taken.queue), item.data) for item in items]
        is_all = not items or items[-1].sequence == staged.last
        if not is_all:
            rest = Range(staged.subject, items[-1].sequence + 1, staged.last)
            subject = self._subject(job, taken.queue)
            puts.append(stream.put(subject, Envelope(0, staged=rest).data()))
        if await self._commit_with_markers(stream, [taken], puts, f"expand {_id()}") and is_all:
            await stream.purge_later(staged.subject)

    def keep(self, deliveries: Sequence[Delivery]) -> None:
        async def tell() -> None:
            for delivery in deliveries:
                await self._connections[delivery.server].tell(_handle(delivery).reply, b"+WPI")
            for server in {delivery.server for delivery in deliveries}:
                await self._connections[server].flush()

        self._run("", tell())

    def commit_taken(
        self, deliveries: Sequence[Delivery], attempt: str, outgoing: Sequence[Outgoing]
    ) -> bool:
        job = deliveries[0].part.job
        return self._run(job, self._commit_taken(deliveries, attempt, outgoing))

    async def _commit_taken(
        self, deliveries: Sequence[Delivery], attempt: str, outgoing: Sequence[Outgoing]
    ) -> bool:
        job = await self._job(deliveries[0].part.job)
        server = deliveries[0].server
        stream = job.streams[server]
        if attempt in self._done:
            await stream.info()  # raises if the job is gone
            return True
        check_outgoing(job.name, outgoing, most_bytes=self.most_bytes, servers=self.servers)
        here = await self._tell_other_servers(job, server, outgoing)
        puts = await self._puts(job, stream, f"t.{token(attempt)}", {}, here)
        taken = [_handle(delivery) for delivery in deliveries]
        if not await self._commit_with_markers(stream, taken, puts, attempt):
            return False
        self._done[attempt] = None
        if len(self._done) > REMEMBERED:
            self._done.popitem(last=False)
        await self._tell(job, server, here)
        await self._sweep_sometimes(job, server, taken)
        return True

    async def _commit_with_markers(
        self, stream: Stream, taken: Sequence[_Taken], puts: list[Put], attempt: str
    ) -> bool:
        text = attempt.encode()
        markers = [
            stream.put(one.marker, text, expected=one.sequence, of=f"*.{one.queue}.{one.id}")
            for one in taken
        ]
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
            await self._ack(stream, taken)
        else:
            open = await self._not_done(stream, taken)
            await self._ack(stream, [one for one in taken if one not in open])
        return is_ours

    async def _ack(self, stream: Stream, taken: Sequence[_Taken]) -> None:
        """Only what is done is acked, so an ack that comes late harms nobody. The last one is
        confirmed, so that counts can wait for it; the server handles them in order."""
        if not taken:
            return
        for one in taken:
            if one.long:
                await stream.purge_later(one.long.subject)
        for one in taken[:-1]:
            await stream.server.tell(one.reply, b"+ACK")
        task = asyncio.ensure_future(stream.server.confirmed(taken[-1].reply, b"+ACK"))
        self._acks.add(task)
        task.add_done_callback(self._acks.discard)

    async def _settle(self) -> None:
        if self._acks:
            await asyncio.wait(self._acks)

    async def _sweep_sometimes(self, job: _Job, server: int, taken: Sequence[_Taken]) -> None:
        key = (job.name, server, taken[0].queue)
        self._swept[key] = self._swept.get(key, 0) + 1
        if self._swept[key] % SWEEP_EVERY == 0:
            info = await job.streams[server].consumer(taken[0].queue)
            await self._sweep(job.streams[server], taken[0].queue, info)

    async def _sweep(self, stream: Stream, queue: int, info: dict[str, Any]) -> None:
        """All messages up to the floor are acked, so they are done. Their markers have higher
        sequences; those up to the floor are of messages that are deleted by then."""
        floor = int(info["ack_floor"]["stream_seq"])
        if floor:
            await stream.purge(f"q.{queue}.*", below=floor + 1)
            await stream.purge(f"d.{queue}.*", below=floor + 1)

    async def _not_done(self, stream: Stream, taken: Sequence[_Taken]) -> list[_Taken]:
        found: set[str] = set()
        for at in range(0, len(taken), PUTS):
            some = taken[at : at + PUTS]
            found |= await stream.subjects([one.subject for one in some])
            found |= await stream.subjects([one.marker for one in some])
        return [one for one in taken if one.subject in found and one.marker not in found]

    def drop_done(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        async def drop() -> list[Delivery]:
            job = await self._job(deliveries[0].part.job)
            left: list[Delivery] = []
            for server in sorted({delivery.server for delivery in deliveries}):
                there = [one for one in deliveries if one.server == server]
                taken = [_handle(one) for one in there]
                open = await self._not_done(job.streams[server], taken)
                await self._ack(job.streams[server], [one for one in taken if one not in open])
                left += [one for one in there if _handle(one) in open]
            return [one for one in deliveries if one in left]

        return self._run(deliveries[0].part.job, drop()) if deliveries else []

    def give_back(self, deliveries: Sequence[Delivery], *, after: float = 0.0) -> None:
        word = b"-NAK " + json.dumps({"delay": int(after * 1e9)}).encode() if after > 0 else b"-NAK"

        async def give() -> None:
            job = await self._job(deliveries[0].part.job)
            for delivery in deliveries:
                await self._connections[delivery.server].confirmed(_handle(delivery).reply, word)
            for server in {delivery.server for delivery in deliveries}:
                stream = job.streams[server]
                await stream.server.tell(f"{stream.news}.{_handle(deliveries[0]).queue}")

        if deliveries:
            self._run(deliveries[0].part.job, give())

    def counts(self, part: Part) -> list[Count]:
        async def get() -> list[Count]:
            job = await self._job(part.job)
            await self._settle()
            return [await self._count(job, part, stream) for stream in job.streams]

        return self._run(part.job, get())

    async def _count(self, job: _Job, part: Part, stream: Stream) -> Count:
        if part.task not in job.numbers.concurrent:
            raise QueuesError(f"{part} is not concurrent, so nothing of it is counted")
        queue = job.numbers.shared_queue(part)
        info = await stream.consumer(queue)
        pending, in_flight = int(info["num_pending"]), int(info["num_ack_pending"])
        if pending + in_flight > FEW:
            last, _ = await stream.info()
            return Count(pending, in_flight, _sequence(last))
        # The consumer may be led by a server that lags behind the leader of the stream. So near the
        # end the messages themselves are counted.
        await self._sweep(stream, queue, info)
        last, names = await stream.info(f"*.{queue}.*")
        done = {name.partition(".")[2] for name in names if name.startswith("d.")}
        held = {name.partition(".")[2] for name in names if name.startswith("q.")} - done
        in_flight = min(in_flight, len(held))
        return Count(len(held) - in_flight, in_flight, _sequence(last))

    # Both

    def wait(self, parts: Sequence[Part], timeout: float) -> None:
        if parts:
            self._run(parts[0].job, self._wait(parts, min(timeout, NEWS_SECONDS)))
        else:
            self._run("", asyncio.sleep(timeout))

    async def _wait(self, parts: Sequence[Part], timeout: float) -> None:
        watched: list[tuple[str, set[int]]] = []
        for part in parts:
            job = await self._job(part.job)
            if job.name not in self._news:
                await self._listen(job)
                return
            watched.append((job.name, job.numbers.queues_of(part)))
        give_up = self._loop.time() + timeout
        while not any(self._news[name] & queues for name, queues in watched):
            self._heard.clear()
            try:
                await asyncio.wait_for(self._heard.wait(), give_up - self._loop.time())
            except TimeoutError:
                return
        for name, queues in watched:
            self._news[name] -= queues

    async def _listen(self, job: _Job) -> None:
        news = self._news[job.name] = set()

        async def heard(message: Msg) -> None:
            news.add(int(message.subject.rpartition(".")[2]))
            self._heard.set()

        for stream in job.streams:
            await stream.server.listen(f"{stream.news}.*", heard)


def _sequence(sequence: int, behind: int | None = None) -> int:
    return sequence * SPAN + (SPAN - 1 if behind is None else behind)


def _taken(queue: int, message: Msg, envelope: Envelope) -> tuple[_Taken, int]:
    """The handle of a message, and how often it was delivered before."""
    tokens = message.reply.split(".")
    delivered, sequence = tokens[4:6] if len(tokens) == 9 else tokens[6:8]
    id = message.subject.rpartition(".")[2]
    return _Taken(queue, id, int(sequence), message.reply, envelope.long), int(delivered) - 1


def _handle(delivery: Delivery) -> _Taken:
    assert isinstance(delivery.handle, _Taken)
    return delivery.handle


def _id() -> str:
    return os.urandom(10).hex()


async def _never() -> None:
    """Of what may be stored twice nobody needs to know whether it was."""
