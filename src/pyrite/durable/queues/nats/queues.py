"""Durable queues in NATS JetStream: on one server or cluster, or spread over several.

Each job has a stream on each server; see `streams.py`. A commit is one atomic batch on one server.
What was confirmed outlives a kill of the server, because the kernel has it. Against power cuts set
`sync_interval: always` in the configuration of the servers, or use clusters with replicas.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, Final, TypeVar

from pyrite.durable.protocol.exactness.commits import Commit, Stored
from pyrite.durable.protocol.exactness.tails import Count
from pyrite.durable.protocol.workflow import Part, Workflow
from pyrite.durable.queues.checks import gone
from pyrite.durable.queues.nats import opening
from pyrite.durable.queues.nats.concurrent import ConcurrentParts
from pyrite.durable.queues.nats.envelopes import Range
from pyrite.durable.queues.nats.jetstream import JetStream, StreamGone
from pyrite.durable.queues.nats.jobs import Job, home
from pyrite.durable.queues.nats.lengths import lengths
from pyrite.durable.queues.nats.news import News
from pyrite.durable.queues.nats.sequential import SequentialParts
from pyrite.durable.queues.nats.streams import Stream
from pyrite.durable.queues.nats.writing import MOST_BYTES
from pyrite.durable.queues.queues import PATIENCE, Delivery, Length, Outgoing, QueuesError

T = TypeVar("T")

ACK_WAIT: Final = 6.0
NEWS_SECONDS: Final = 0.1
"""A wait ends so early: news may be lost, and back-offs end without any."""


class NatsQueues:
    """`urls` has for each server its address, or those of the members of its cluster. `cluster`
    keeps the jobs of several deployments apart that use the same NATS. Streams have `replicas`
    copies: 3 unless said otherwise, if three members are named, else 1. Calls wait for a server
    that is away for `patience` seconds. A message is delivered again after `ack_wait` seconds if
    its owner does not call `keep`."""

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
        self._jobs: dict[str, Job] = {}
        self._news = News()
        self._sequential = SequentialParts(self._news)
        self._concurrent = ConcurrentParts(self._news)
        self._connections = [JetStream(members, patience=patience) for members in urls]
        self._loop = asyncio.new_event_loop()
        try:
            for connection in self._connections:
                self._loop.run_until_complete(connection.connect())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.run_until_complete(self._end())
            self._loop.close()

    async def _end(self) -> None:
        await self._concurrent.settle()
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
            where = " and ".join(", ".join(one.urls) for one in self._connections)
            raise gone(job, where) from error

    def _forget(self, job: str) -> None:
        self._jobs.pop(job, None)
        for part in self._news, self._sequential, self._concurrent:
            part.forget(job)

    async def _job(self, name: str) -> Job:
        if name not in self._jobs:
            self._jobs[name] = await opening.find(name, self._streams(name))
        return self._jobs[name]

    def _streams(self, job: str) -> list[Stream]:
        return [Stream(server, self._cluster, job) for server in self._connections]

    # The life of a job's queues

    def open_job(
        self, job: str, workflow: Workflow, first: Iterable[Outgoing], *, code: bytes
    ) -> None:
        self._jobs[job] = self._run(
            job,
            opening.create(
                job,
                self._streams(job),
                workflow,
                first,
                code=code,
                replicas=self._replicas,
                ack_wait=self._ack_wait,
            ),
        )

    def code(self, job: str) -> bytes:
        async def get() -> bytes:
            stream = (await self._job(job)).streams[0]
            last = await stream.last("c")
            return await stream.whole(Range("c", 1, last.sequence if last else 0))

        return self._run(job, get())

    def close_job(self, job: str) -> None:
        async def delete() -> None:
            await self._concurrent.settle()
            for stream in self._streams(job):
                try:
                    await stream.delete()
                except StreamGone:
                    pass

        self._run(job, delete())
        self._forget(job)

    def jobs(self) -> list[str]:
        return self._run("", opening.names(self._connections, self._cluster))

    def home(self, part: Part) -> int:
        return home(part, self.servers)

    def lengths(self, job: str) -> list[Length]:
        async def get() -> list[Length]:
            return await lengths(await self._job(job))

        return self._run(job, get())

    # Sequential parts

    def record(self, part: Part) -> Stored:
        async def get() -> Stored:
            return await self._sequential.record(await self._job(part.job), part)

        return self._run(part.job, get())

    def state(self, part: Part, record: Stored) -> bytes:
        async def get() -> bytes:
            return await self._sequential.state(await self._job(part.job), part, record)

        return self._run(part.job, get())

    def read(
        self, part: Part, edge: str, server: int, position: int, *, limit: int
    ) -> list[Delivery]:
        async def get() -> list[Delivery]:
            job = await self._job(part.job)
            return await self._sequential.read(job, part, edge, server, position, limit)

        return self._run(part.job, get())

    def stage(self, part: Part, attempt: str, outgoing: Sequence[Outgoing]) -> None:
        async def put() -> None:
            await self._sequential.stage(await self._job(part.job), part, attempt, outgoing)

        self._run(part.job, put())

    def commit(
        self, part: Part, commit: Commit, outgoing: Sequence[Outgoing], *, state: bytes | None
    ) -> Stored:
        async def put() -> Stored:
            job = await self._job(part.job)
            return await self._sequential.commit(job, part, commit, outgoing, state)

        return self._run(part.job, put())

    # Concurrent parts

    def take(self, part: Part, *, owner: str, limit: int) -> list[Delivery]:
        async def get() -> list[Delivery]:
            return await self._concurrent.take(await self._job(part.job), part, limit)

        return self._run(part.job, get())

    def keep(self, deliveries: Sequence[Delivery]) -> None:
        self._run("", self._concurrent.keep(self._connections, deliveries))

    def commit_taken(
        self, deliveries: Sequence[Delivery], attempt: str, outgoing: Sequence[Outgoing]
    ) -> bool:
        name = deliveries[0].part.job

        async def put() -> bool:
            job = await self._job(name)
            return await self._concurrent.commit(job, deliveries, attempt, outgoing)

        return self._run(name, put())

    def drop_done(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        if not deliveries:
            return []
        name = deliveries[0].part.job

        async def drop() -> list[Delivery]:
            return await self._concurrent.drop_done(await self._job(name), deliveries)

        return self._run(name, drop())

    def give_back(self, deliveries: Sequence[Delivery], *, after: float = 0.0) -> None:
        if not deliveries:
            return
        name = deliveries[0].part.job

        async def give() -> None:
            await self._concurrent.give_back(await self._job(name), deliveries, after)

        self._run(name, give())

    def counts(self, part: Part) -> list[Count]:
        async def get() -> list[Count]:
            return await self._concurrent.counts(await self._job(part.job), part)

        return self._run(part.job, get())

    # Both

    def wait(self, parts: Sequence[Part], timeout: float) -> None:
        async def wait() -> None:
            watched = [(await self._job(part.job), part) for part in parts]
            await self._news.wait(watched, min(timeout, NEWS_SECONDS))

        self._run(parts[0].job if parts else "", wait())
