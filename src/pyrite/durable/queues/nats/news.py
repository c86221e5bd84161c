"""How a peer hears of new messages. Whoever commits tells it to all who listen; nothing depends on
it but time."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from nats.aio.msg import Msg

from pyrite.durable.protocol.workflow import Part
from pyrite.durable.queues.nats.jobs import Job


class News:
    def __init__(self) -> None:
        self._queues: defaultdict[str, set[int]] = defaultdict(set)
        self._listening: set[str] = set()
        self._heard = asyncio.Event()

    def expect_none(self, job: Job, queue: int) -> None:
        """The queue will be looked at now."""
        self._queues[job.name].discard(queue)

    def expect(self, job: Job, queue: int) -> None:
        """There was something in the queue, so there may be more: a wait returns at once."""
        self._queues[job.name].add(queue)

    def forget(self, job: str) -> None:
        self._queues.pop(job, None)
        self._listening.discard(job)

    async def wait(self, parts: Sequence[tuple[Job, Part]], timeout: float) -> None:
        for job, _ in parts:
            if job.name not in self._listening:
                await self._listen(job)
                return
        watched = [(job.name, job.numbers.queues_of(part)) for job, part in parts]
        loop = asyncio.get_running_loop()
        give_up = loop.time() + timeout
        while not any(self._queues[name] & queues for name, queues in watched):
            self._heard.clear()
            try:
                await asyncio.wait_for(self._heard.wait(), give_up - loop.time())
            except TimeoutError:
                return
        for name, queues in watched:
            self._queues[name] -= queues

    async def _listen(self, job: Job) -> None:
        queues = self._queues[job.name]

        async def heard(message: Msg) -> None:
            queues.add(int(message.subject.rpartition(".")[2]))
            self._heard.set()

        for stream in job.streams:
            await stream.server.listen(f"{stream.news}.*", heard)
        self._listening.add(job.name)
