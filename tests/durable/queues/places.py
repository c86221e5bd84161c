"""Where the queues of a test are: each kind of queues behind the same few calls."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pyrite.durable.folder.locks import Lock
from pyrite.durable.protocol.exactness.commits import Commit, Record, Stored
from pyrite.durable.protocol.exactness.sentinels import End, Sentinel
from pyrite.durable.protocol.workflow import SPLITS, Edge, Part, Task, Workflow
from pyrite.durable.queues.nats import NatsQueues
from pyrite.durable.queues.queues import Delivery, Message, Outgoing, Queues
from pyrite.durable.queues.sqlite import SqliteQueues

WORKFLOW = Workflow(
    (
        Task("map", "concurrent", 1, (Edge("splits", None), Edge("more splits", None))),
        Task("count", "sequential", 2, (Edge("words", "map"), Edge("side", None, 1))),
        Task("out", "sequential", 1, (Edge("counts", "count"),)),
    )
)
ACK_WAIT = 0.5
NUMBERS = itertools.count(1)


class Place(ABC):
    keeps = 1
    """How often an owner says that it lives until it would have been thought dead."""

    def __init__(self) -> None:
        self._opened: list[Queues] = []

    @abstractmethod
    def make(self) -> Queues:
        """New queues on the same storage, as another process would make them."""

    @abstractmethod
    def owner(self) -> str:
        """The name of an owner that is alive."""

    @abstractmethod
    def let_die(self, owner: str) -> None: ...

    def open(self) -> Queues:
        self._opened.append(self.make())
        return self._opened[-1]

    def close(self) -> None:
        for queues in self._opened:
            queues.close()


class SqlitePlace(Place):
    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._locks: dict[str, Lock] = {}

    def make(self) -> Queues:
        return SqliteQueues(self._folder)

    def owner(self) -> str:
        name = f"owner-{next(NUMBERS)}"
        self._locks[name] = Lock(self._folder, name)
        return name

    def let_die(self, owner: str) -> None:
        self._locks.pop(owner).release()

    def close(self) -> None:
        super().close()
        for lock in self._locks.values():
            lock.release()


class NatsPlace(Place):
    keeps = 5

    def __init__(
        self,
        urls: Sequence[Sequence[str]],
        *,
        patience: float = 20.0,
        ack_wait: float = ACK_WAIT,
    ) -> None:
        super().__init__()
        self.ack_wait = ack_wait
        self.urls = urls
        self._patience = patience
        self.cluster = f"cluster {next(NUMBERS)}"

    def make(self) -> Queues:
        return NatsQueues(
            self.urls, cluster=self.cluster, patience=self._patience, ack_wait=self.ack_wait
        )

    def owner(self) -> str:
        return f"owner-{next(NUMBERS)}"

    def let_die(self, owner: str) -> None:
        """It says no more that it lives."""


class Job:
    """A job with WORKFLOW, and short ways to say what is done with its queues."""

    def __init__(self, queues: Queues) -> None:
        self.name = f"job-{next(NUMBERS)}"
        self.queues = queues
        self.map = Part(self.name, "map", 0)
        self.count = Part(self.name, "count", 0)
        self.other = Part(self.name, "count", 1)
        self.out = Part(self.name, "out", 0)

    def begin(self, *splits: str, code: bytes = b"code") -> Job:
        self.begin_with([self.split(body) for body in splits], code=code)
        return self

    def begin_with(self, first: Iterable[Outgoing], *, code: bytes = b"code") -> None:
        self.queues.open_job(self.name, WORKFLOW, first, code=code)

    def split(self, body: str, edge: str = "splits", server: int | None = None) -> Outgoing:
        return Outgoing(self.map, Message(edge, body.encode()), server)

    def word(self, body: str, *, part: Part | None = None, server: int | None = None) -> Outgoing:
        return Outgoing(part or self.count, Message("words", body.encode()), server)

    def sentinel(self, id: str | None = None, *, server: int | None = None) -> Outgoing:
        end = Sentinel(End("splits", SPLITS), id)
        return Outgoing(self.map, Message("splits", sentinel=end), server)

    def words(self, part: Part | None = None, edge: str = "words") -> list[str]:
        """All that a part of "count" can read, server by server."""
        return [body(delivery) for delivery in self.read(part, edge)]

    def read(self, part: Part | None = None, edge: str = "words") -> Iterator[Delivery]:
        for server in range(self.queues.servers):
            position = 0
            while got := self.queues.read(part or self.count, edge, server, position, limit=100):
                yield from got
                position = got[-1].sequence + 1

    def held(self) -> tuple[int, int]:
        """What the queue of "map" holds: pending, in flight."""
        counts = self.queues.counts(self.map)
        return sum(count.pending for count in counts), sum(count.in_flight for count in counts)


def body(delivery: Delivery) -> str:
    return delivery.message.body.decode()


def take(job: Job, owner: str, count: int) -> list[Delivery]:
    """Takes until so many have come."""
    got: list[Delivery] = []
    while len(got) < count:
        job.queues.wait([job.map], 1.0)
        got += job.queues.take(job.map, owner=owner, limit=count - len(got))
    return got


def commit_all(job: Job, taken: Sequence[Delivery], attempt: str, word: str) -> bool:
    """Commits, on each server, what came from it. True if all servers accept."""
    accepted = True
    for server in sorted({one.server for one in taken}):
        there = [one for one in taken if one.server == server]
        accepted &= job.queues.commit_taken(there, f"{attempt}-{server}", [job.word(word)])
    return accepted


def bodies(deliveries: Sequence[Delivery]) -> list[str]:
    return [body(delivery) for delivery in deliveries]


def following(last: Stored, attempt: str, *, epoch: int = 1, **changes: object) -> Commit:
    return Commit(last.sequence, Record(epoch, attempt, **changes))  # type: ignore[arg-type]
