"""A part of a sequential task: it reads its queues in order, and commits its positions, the state
of its processors and its output in one step."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from pyrite.durable.parts.code import JobCode
from pyrite.durable.parts.committing import commit, new_attempt, take_part_over
from pyrite.durable.parts.running import OUTPUT_BYTES, PartFailed, Running
from pyrite.durable.parts.tally import Tally
from pyrite.durable.protocol.exactness.commits import Commit
from pyrite.durable.protocol.exactness.reading import Came, has_ended, readable
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.queues.queues import Delivery, Queues

READ_AHEAD: Final = 16
"""Messages that are read at a time from one queue and server."""
COMMIT_MESSAGES: Final = 64
COMMIT_SECONDS: Final = 0.5
"""A part commits after so many messages or seconds, when it is quiet, or when it has read all that
there is."""
SAVING_SHARE: Final = 10
"""Saving a large state may take a tenth of the time."""
MOST_STATE: Final = 512 << 20
"""A part with a larger state is not saved: it starts anew when its peer dies."""
IDLE_SECONDS: Final = 0.05


class SequentialPart:
    """`check` is called often; it raises PartStopped when the part was taken away."""

    def __init__(
        self,
        code: JobCode,
        part: Part,
        queues: Queues,
        *,
        offer: int,
        files: Path | None,
        check: Callable[[], None],
        tally: Tally | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._code = code
        self._planned = code.planned.by_name[part.task]
        self._workflow = code.planned.workflow
        self._task = self._workflow.by_name[part.task]
        self._part = part
        self._queues = queues
        self._offer = offer
        self._files = files
        self._check = check
        self._tally = tally or Tally(part, offer)
        self._clock = clock
        self._stored = take_part_over(queues, part, offer)
        self._begin()

    def run(self) -> None:
        """Returns when the part has nothing left to do but to seal. A batch that raises is tried
        again from the last commit, a limited number of times. Raises PartStopped or PartFailed."""
        tries = 0
        while not self._stored.record.is_over:
            before = self._stored.sequence
            try:
                self._run_from_record()
            except PartFailed:
                tries = tries + 1 if self._stored.sequence == before else 1
                if tries >= self._code.tries:
                    raise
                self._begin()

    def _begin(self) -> None:
        record = self._stored.record
        self._came = set(record.ended)
        self._positions = dict(record.positions)
        self._ahead: dict[tuple[str, int], deque[Delivery]] = {}
        self._attempt = new_attempt()
        self._messages = 0
        self._since = self._clock()
        self._saving_seconds = 0.0
        self._can_be_saved = True
        self._is_dirty = False

    def _run_from_record(self) -> None:
        running = Running(
            self._code,
            self._planned,
            self._part,
            attempt=self._attempt,
            files=self._files,
            most_bytes=self._queues.most_bytes,
            check=self._check,
        )
        error: BaseException | None = None
        self._tally.look = running.since_measured
        try:
            self._drive(running)
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._tally.look = None
            running.close(error)

    def _drive(self, running: Running) -> None:
        self._can_be_saved = running.can_be_saved
        state = self._queues.state(self._part, self._stored)
        if state:
            running.resume(state)
        for edge in self._task.edges:
            if self._has_ended(edge.name):
                running.end(edge.name)
        while True:
            # A source of the user's may work for hours: the part commits in between, if it can.
            is_idle = running.settle(lambda: self._on_output(running), seconds=COMMIT_SECONDS)
            if running.is_over:
                break
            self._is_dirty = self._is_dirty or not is_idle
            self._commit_if_due(running)
            self._check()
            delivery = self._next()
            if delivery is not None:
                self._feed(running, delivery)
            elif is_idle and running.is_waiting:
                self._is_dirty = running.wait(IDLE_SECONDS) or self._is_dirty
            elif is_idle:
                if self._is_dirty and self._may_commit(running) and not self._saves_too_much():
                    self._commit(running)
                else:
                    self._queues.wait([self._part], IDLE_SECONDS)
        running.report()
        running.complete()
        self._commit(running, is_over=True)

    # Input

    def _next(self) -> Delivery | None:
        """The next message of the edges that may be read now."""
        edges = readable(self._workflow, self._task, self._came, servers=self._queues.servers)
        for edge in edges:
            for server in range(self._queues.servers):
                place = (edge.name, server)
                ahead = self._ahead.get(place)
                if not ahead:
                    position = self._positions.get(place, 0)
                    ahead = self._ahead[place] = deque(
                        self._queues.read(self._part, edge.name, server, position, limit=READ_AHEAD)
                    )
                if ahead:
                    return ahead.popleft()
        return None

    def _feed(self, running: Running, delivery: Delivery) -> None:
        message = delivery.message
        self._positions[message.edge, delivery.server] = delivery.sequence + 1
        self._messages += 1
        self._is_dirty = True
        if message.sentinel is None:
            running.feed(message.edge, message.body)
            return
        before = self._has_ended(message.edge)
        end = message.sentinel.end
        self._came.add(Came(end.edge, end.upstream, delivery.server))
        if not before and self._has_ended(message.edge):
            running.end(message.edge)

    def _has_ended(self, name: str) -> bool:
        edge = next(each for each in self._task.edges if each.name == name)
        return has_ended(self._workflow, edge, self._came, servers=self._queues.servers)

    # Commits

    def _on_output(self, running: Running) -> None:
        """Much output waits in the middle of a message: it cannot be committed before the part is
        quiet, so it is staged."""
        self._queues.stage(self._part, self._attempt, running.take())

    def _commit_if_due(self, running: Running) -> None:
        waited = self._clock() - self._since
        is_due = self._messages >= COMMIT_MESSAGES or waited >= COMMIT_SECONDS
        if (is_due and not self._saves_too_much()) or running.egress.size >= OUTPUT_BYTES:
            if self._is_dirty and self._may_commit(running):
                self._commit(running)
            elif running.egress.size >= OUTPUT_BYTES:
                self._on_output(running)

    def _saves_too_much(self) -> bool:
        """Whether another commit now would take more than its share of the time."""
        return self._clock() - self._since < SAVING_SHARE * self._saving_seconds

    def _may_commit(self, running: Running) -> bool:
        return self._can_be_saved and running.is_quiet

    def _commit(self, running: Running, *, is_over: bool = False) -> None:
        started = self._clock()
        state: bytes | None = b""
        if not is_over:
            state = running.save()
            if state is None or len(state) > MOST_STATE:  # it commits only at its end
                self._can_be_saved = False
                return
        more = running.measure()
        record = replace(
            self._stored.record,
            epoch=self._offer,
            attempt=self._attempt,
            positions=dict(self._positions),
            ended=frozenset(self._came),
            is_over=is_over,
        )
        asked = Commit(self._stored.sequence, record)
        self._stored = commit(self._queues, self._part, asked, running.take(), state)
        self._tally.commits(more)
        self._attempt = new_attempt()
        self._messages = 0
        self._is_dirty = False
        self._since = self._clock()
        self._saving_seconds = self._since - started
