"""A concurrent part: any number of peers take messages from its queue. The output of a batch and
the done markers of its messages are committed in one step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pyrite.durable.parts.code import JobCode
from pyrite.durable.parts.committing import new_attempt
from pyrite.durable.parts.leaders import Leaders
from pyrite.durable.parts.running import PartFailed, Running
from pyrite.durable.parts.tally import Tally
from pyrite.durable.protocol.exactness.sentinels import Requeue, Sentinel, ends, judge
from pyrite.durable.protocol.exactness.tails import Leader, TailCheck
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.queues.queues import (
    Delivery,
    Message,
    Outgoing,
    Queues,
    QueuesError,
    QueuesGone,
)
from pyrite.durable.store.store import SessionLost, Store

BATCH: Final = 16
"""Messages that are taken and committed together. Their output makes fewer and larger messages."""
KEEP_SECONDS: Final = 1.0
FIRST_PAUSE: Final = 0.005
FAILED_SECONDS: Final = 5.0
"""After a batch has failed for the last time, others get it only if the job goes on for so long:
the coordinator may ignore the failure, if the part was taken away meanwhile."""
LONGEST_PAUSE: Final = 0.1


class ConcurrentPart:
    """`owner` names this peer to the queues. `check` is called often; it raises PartStopped when
    the part was taken away."""

    def __init__(
        self,
        code: JobCode,
        part: Part,
        queues: Queues,
        store: Store,
        *,
        owner: str,
        files: Path | None,
        check: Callable[[], None],
        tally: Tally | None = None,
    ) -> None:
        self._code = code
        self._planned = code.planned.by_name[part.task]
        self._part = part
        self._queues = queues
        self._owner = owner
        self._files = files
        self._is_stopped = check
        self._tally = tally or Tally(part, 0)
        self._taken: Sequence[Delivery] = ()
        self._leaders = Leaders(store, part)
        self._ends = ends(code.planned.workflow, part.task)
        self._running: Running | None = None
        self._pause = FIRST_PAUSE
        self._kept = time.monotonic()

    def run(self) -> None:
        """Returns at the tail: all upstream parts have sealed, and nothing but sentinels is left.
        Raises PartStopped or PartFailed."""
        try:
            while True:
                self._check()
                taken = self._taken = self._queues.take(self._part, owner=self._owner, limit=BATCH)
                if self._handle(taken):
                    return
                if not taken:
                    self._queues.wait([self._part], LONGEST_PAUSE)
                elif all(each.message.sentinel for each in taken):
                    self._queues.wait([], self._pause)
                    self._pause = min(2 * self._pause, LONGEST_PAUSE)
                else:
                    self._pause = FIRST_PAUSE
        except BaseException as error:
            self._close()
            self._give_back(after=FAILED_SECONDS if isinstance(error, PartFailed) else 0.0)
            raise
        finally:
            self._close()

    def _give_back(self, *, after: float) -> None:
        """What cannot be given back belongs to this peer as long as it lives, so it must not live
        on."""
        try:
            self._queues.give_back(self._taken, after=after)
        except QueuesGone:
            pass
        except QueuesError as error:
            raise SessionLost(f"what it had taken could not be given back: {error}") from error

    def _check(self) -> None:
        self._is_stopped()
        now = time.monotonic()
        if now - self._kept >= KEEP_SECONDS:
            self._kept = now
            self._queues.keep(self._taken)

    def _handle(self, taken: Sequence[Delivery]) -> bool:
        """Returns whether this is the tail."""
        batches: dict[int, list[Delivery]] = {}
        for each in taken:
            if each.message.sentinel is None:
                batches.setdefault(each.server, []).append(each)
        for batch in batches.values():
            self._work(batch)
        is_tail = False
        for each in taken:
            if each.message.sentinel is not None:
                is_tail = self._meet(each, each.message.sentinel) or is_tail
        return is_tail

    # Segments

    def _work(self, batch: Sequence[Delivery]) -> None:
        try:
            self._try(batch)
        except PartFailed as failed:
            if len(batch) == 1:
                self._try_again(batch[0], failed)
            else:  # most of them may be good
                for each in batch:
                    self._work([each])

    def _try_again(self, delivery: Delivery, failed: PartFailed) -> None:
        for _ in range(1, self._code.tries):
            try:
                return self._try([delivery])
            except PartFailed as again:
                failed = again
        raise failed

    def _try(self, batch: Sequence[Delivery]) -> None:
        running = self._fresh()
        try:
            for each in batch:
                running.feed(each.message.edge, each.message.body)
            running.settle()
            assert running.is_quiet, f"{self._part} is not quiet although nothing is left to do"
            more = running.measure()
            outgoing = running.take()
        except BaseException as error:
            self._close(error)
            raise
        if self._queues.commit_taken(batch, new_attempt(), outgoing):
            self._tally.commits(more)
        else:
            # Somebody else has committed one of them, with its output.
            left = self._queues.drop_done(batch)
            if len(left) < len(batch):
                for each in left:
                    self._work([each])
            elif len(batch) > 1:
                for each in batch:
                    self._work([each])

    def _fresh(self) -> Running:
        if self._running is None:
            self._running = Running(
                self._code,
                self._planned,
                self._part,
                attempt=new_attempt(),
                files=self._files,
                most_bytes=self._queues.most_bytes,
                check=self._check,
            )
        return self._running

    def _close(self, error: BaseException | None = None) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.close(error)

    # Sentinels

    def _meet(self, delivery: Delivery, sentinel: Sentinel) -> bool:
        leader: Leader | None = None
        only_leaders = False
        if sentinel.id is not None:
            mine = Leader(sentinel.id, delivery.server, delivery.sequence)
            leader = self._leaders.elect(sentinel.end, mine)
            only_leaders = leader.id == sentinel.id and self._only_leaders()
        verdict = judge(
            sentinel, leader=None if leader is None else leader.id, only_leaders=only_leaders
        )
        outgoing = []
        if verdict.requeue is not Requeue.NO:
            new = replace(sentinel, id=sentinel.id or new_attempt())
            outgoing = [
                Outgoing(self._part, Message(delivery.message.edge, sentinel=new), delivery.server)
            ]
        self._queues.commit_taken([delivery], new_attempt(), outgoing)
        return verdict.is_tail

    def _only_leaders(self) -> bool:
        tail = TailCheck(self._ends, self._leaders.known(self._ends), servers=self._queues.servers)
        for server, count in enumerate(self._queues.counts(self._part)):
            tail.counted(server, count)
        return tail.only_leaders
