"""The leader: it takes over from the one before, and then handles one event at a time. What it does
to the store is decided in `protocol/coordinator`; this does it."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pyrite.durable.coordinator import upkeep
from pyrite.durable.coordinator.closing import Closing
from pyrite.durable.coordinator.newcomers import Newcomers
from pyrite.durable.coordinator.orphans import Orphans
from pyrite.durable.coordinator.stumbles import Stumble, again, instead
from pyrite.durable.coordinator.telling import sentences
from pyrite.durable.protocol.coordinator.deadlines import Deadlines
from pyrite.durable.protocol.coordinator.decide import decide
from pyrite.durable.protocol.coordinator.draft import Decision, Timer
from pyrite.durable.protocol.coordinator.events import (
    Born,
    Cancel,
    Collect,
    Event,
    Shutdown,
    words,
)
from pyrite.durable.protocol.coordinator.log import MOST_WRITES, Entry, after, repeated, steps
from pyrite.durable.protocol.coordinator.offers import wish
from pyrite.durable.protocol.coordinator.takeover import take_over
from pyrite.durable.protocol.coordinator.watches import CancelWatch, Watch, planned
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import UNTOUCHED, WANTED, JobStatus
from pyrite.durable.protocol.tree.writes import CloseQueues, Create, Delete, Put, Write
from pyrite.durable.store.store import Store

logger = logging.getLogger("pyrite.durable.coordinator")

ACK_SECONDS: Final = 10.0
MOST_EVENTS: Final = 100
"""Events in a row before the leader looks at what it wants to do itself. Else idle peers would get
no offers while events come without a pause."""
ROOTS: Final = ("/plan", "/peer", "/cancel", "/shutdown")
KNOWN: Final = (
    "/workflow",  # after the plans: a client writes it before them
    "/job",
    paths.JOB_LOG,
    paths.CHECKPOINT,
    "/peer-state",
    "/task",
    "/ack",
    "/seal",
    "/completion",
)


@dataclass(frozen=True, slots=True)
class _More:
    """More children of this node are new."""

    root: str


class Leader:
    """Whoever has won the election makes one, and calls `begin` and then `run`. An exception ends
    it: EpochIsOver and SessionLost when another one leads, or will.

    `close_queues` deletes the queues of a job that has ended; its second argument is whether the
    job is complete. It may be called again for the same job, and it is called on another thread. So
    is `list_queues`, which tells which jobs have queues. `clock` tells when offers must have been
    taken.
    """

    def __init__(
        self,
        store: Store,
        close_queues: Callable[[str, bool], object],
        list_queues: Callable[[], Iterable[str]] = tuple,
        *,
        clock: Callable[[], float] = time.monotonic,
        time_of_day: Callable[[], float] = time.time,
        ack_seconds: float = ACK_SECONDS,
        most_writes: int = MOST_WRITES,
    ) -> None:
        self._store = store
        self._clock = clock
        self._time_of_day = time_of_day
        self._most_writes = most_writes
        self._closing = Closing(close_queues, store.wake)
        self._orphans = Orphans(list_queues, store.wake)
        self._deadlines = Deadlines(seconds=ack_seconds)
        self._inbox: deque[str | _More | Event] = deque()
        self._since_wish = 0
        self._watches: dict[str, Watch] = {}
        self._is_stopped = False

    # Taking over

    def begin(self) -> None:
        """Takes over: afterwards all that was under way goes on."""
        self._epoch = self._store.raise_epoch()
        logger.info("leads, in epoch %d", self._epoch)
        own = self._store.below("/coordinator")
        checkpoint = int(own.get(paths.CHECKPOINT, "0"))
        log = {path: text for path, text in own.items() if "-log/log-entry-" in path}
        self._done = upkeep.DoneEntries(log)
        self._stumble = Stumble.read(own[paths.STUMBLE]) if paths.STUMBLE in own else None
        for entry in after(checkpoint, map(Entry.read, log.values())):
            for writes in repeated(entry, most=self._most_writes):
                self._transact(writes)
        to_close = self._store.children(paths.TO_CLOSE)
        self._take_over()
        for job in to_close:
            self._close(job)
        self._orphans.due = self._clock()

    def _take_over(self) -> None:
        nodes = self._store.below(*ROOTS)
        nodes |= self._store.below(*KNOWN)
        taken = take_over(nodes)
        self._cluster = taken.cluster
        self._waits = upkeep.Waits(self._store.below(paths.WAITS))
        self._waits.changed(now=self._clock())
        names: dict[str, list[str]] = {root: [] for root in ROOTS}
        for path in nodes:
            root, _, name = path.rpartition("/")
            if root in names:
                names[root].append(name)
        self._newcomers = {root: Newcomers(seen=seen) for root, seen in names.items()}
        told = {watch.path for watch in taken.watches if nodes.get(watch.path, UNTOUCHED)}
        watches = [watch for watch in taken.watches if watch.path not in told]
        timers = list(taken.timers)
        for event in taken.events:
            decision = self._do(event)
            watches += decision.watches
            timers += decision.timers
        self._arm(watches, timers)
        self._inbox.extend(ROOTS)

    # The loop

    def run(self) -> None:
        """Leads until it is stopped."""
        while not self._is_stopped:
            self.step(None)

    def step(self, timeout: float | None = 0.0) -> bool:
        """Does one thing, if there is one to do or if one comes within so many seconds. False if
        there is none."""
        self._hear(0.0)
        if self._work():
            return True
        self._hear(self._pause(timeout))
        return self._work()

    @property
    def closes_queues(self) -> bool:
        """Whether queues of ended jobs are still to be deleted."""
        return self._closing.is_busy

    @property
    def looks_for_orphans(self) -> bool:
        """Whether it has begun to look for what dead clients have left."""
        return self._orphans.due is None

    def stop(self) -> None:
        """Does nothing more. Any thread may call it."""
        self._is_stopped = True
        self._closing.stop()
        self._store.wake()

    def _hear(self, timeout: float | None) -> None:
        """What has happened comes into the inbox, in its order."""
        path = self._store.changed(timeout)
        while path is not None:
            self._inbox.append(path)
            path = self._store.changed(0.0)
        self._inbox.extend(self._deadlines.due(now=self._clock()))

    def _work(self) -> bool:
        if closed := self._closing.closed():
            self._transact([Delete(paths.to_close(job)) for job in closed])
            return True
        if orphans := self._orphans.found(self._store, now=self._clock()):
            self._delete(orphans)
            return True
        if own := self._wish():
            self._since_wish = 0
            self._handle(own)
        elif waits := self._waits.writes(self._cluster, now=self._clock()):
            self._transact(waits)
        elif self._inbox:
            self._since_wish += 1
            if event := self._event(self._inbox.popleft()):
                self._handle(event)
        else:
            return False
        return True

    def _wish(self) -> Event | None:
        if self._inbox and self._since_wish < MOST_EVENTS:
            return None
        self._since_wish = 0
        own = wish(self._cluster)
        return None if self._inbox and isinstance(own, Collect) else own

    def _pause(self, timeout: float | None) -> float | None:
        """How long nothing happens at most, if nobody does anything."""
        if self._is_stopped:
            return 0.0
        now = self._clock()
        times = (self._deadlines.next(), self._waits.due, self._orphans.due)
        ends = [end - now for end in times if end is not None]
        if timeout is not None:
            ends.append(timeout)
        return max(0.0, min(ends)) if ends else None

    # What waits in the inbox

    def _event(self, waiting: str | _More | Event) -> Event | None:
        """The event that it stands for, if any. What others have written is read only now."""
        if isinstance(waiting, _More):
            return self._newcomer(waiting.root)
        if not isinstance(waiting, str):
            return waiting
        if waiting in self._newcomers:
            self._newcomers[waiting].listed(self._store.watch_children(waiting))
            return self._newcomer(waiting)
        watch = self._watches.get(waiting)
        return None if watch is None else self._look([watch])[0]

    def _newcomer(self, root: str) -> Event | None:
        """One at a time: if a thousand jobs are submitted at once, other events come between."""
        newcomers = self._newcomers[root]
        name = newcomers.next()
        if newcomers:
            self._inbox.append(_More(root))
        if name is None:
            return None
        match root:
            case "/plan":
                return planned(name, self._store.get(paths.workflow(name)))
            case "/peer":
                return Born(name)
            case "/cancel":
                return Cancel(name)
        return Shutdown(name) if self._store.get(paths.shutdown(name)) == WANTED else None

    def _arm(self, watches: Iterable[Watch], timers: Iterable[Timer]) -> None:
        for timer in timers:
            self._deadlines.arm(timer, now=self._clock())
        nodes = []
        for watch in watches:
            if not isinstance(watch, CancelWatch):
                nodes.append(watch)
            elif event := watch.event(self._store.get(watch.path)):  # later ones are newcomers
                self._inbox.append(event)
        self._inbox.extend(event for event in self._look(nodes) if event is not None)

    def _look(self, watches: Sequence[Watch]) -> list[Event | None]:
        """Arms watches and reads their nodes. Each watch tells of one event."""
        found = self._store.watch_all([watch.path for watch in watches]) if watches else []
        events = [watch.event(data) for watch, data in zip(watches, found)]
        for watch, event in zip(watches, events):
            if event is None:
                self._watches[watch.path] = watch
            else:
                self._watches.pop(watch.path, None)
        return events

    # Decisions

    def _handle(self, event: Event) -> None:
        decision = self._do(event)
        self._arm(decision.watches, decision.timers)

    def _do(self, event: Event) -> Decision:
        """Decides on an event, and does what was decided."""
        chosen = instead(event, self._stumble)
        if chosen is None:
            logger.error("left out what cannot be handled: %s", words(event))
            return Decision(None)
        try:
            now = round(self._time_of_day(), 3)
            decision = decide(self._cluster, chosen, now=now)
        except Exception as error:
            self._transact([Put(paths.STUMBLE, again(self._stumble, event, repr(error)).text())])
            raise
        if decision.entry is not None:
            self._write(decision.entry)
        if self._stumble is not None and self._stumble.event == words(event):
            self._stumble = None
            self._transact([Delete(paths.STUMBLE)])
        return decision

    def _write(self, entry: Entry) -> None:
        for writes in steps(entry, most=self._most_writes):
            self._transact(writes)
        self._done.add(entry.path)
        self._waits.changed(now=self._clock())
        for write in entry.writes:
            match write:
                case Delete(path):
                    self._forget(path)
                case CloseQueues(job):
                    self._close(job)
        for sentence in sentences(entry):
            logger.info(sentence)
        for old in (self._done.old(), upkeep.forget_old_jobs(self._cluster)):
            if old:
                self._transact(old)

    def _delete(self, orphans: Sequence[str]) -> None:
        """A job that nobody has submitted, and nobody will."""
        for job in orphans:
            logger.info("deletes job %r: its client died while it submitted it", job)
            nodes = (
                path(job) for path in (paths.catalog, paths.shape, paths.workflow, paths.cancel)
            )
            self._transact([CloseQueues(job), *map(Delete, nodes)])
            self._closing.close(job, is_complete=False)

    def _close(self, job: str) -> None:
        """One of which nothing is known is taken for complete: nothing of it is undone."""
        node = self._cluster.ended.get(job)
        self._closing.close(job, is_complete=node is None or node.status is JobStatus.COMPLETE)

    def _forget(self, path: str) -> None:
        self._watches.pop(path, None)
        root, _, name = path.rpartition("/")
        if root in self._newcomers:
            self._newcomers[root].gone(name)

    def _transact(self, writes: Sequence[Write]) -> None:
        """To delete queues takes other servers than the store, so it is noted, and done later."""
        self._store.transact(
            self._epoch,
            [
                Create(paths.to_close(write.job)) if isinstance(write, CloseQueues) else write
                for write in writes
            ],
        )
