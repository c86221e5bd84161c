"""All parts of executions that a member runs: their start, their messages and their end."""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from pyrite.cluster.edges.window import PERIOD
from pyrite.cluster.light.figures import PartFigures
from pyrite.cluster.light.outcomes import MemberLost, Order, Outcome
from pyrite.cluster.light.participant import Participant
from pyrite.cluster.light.plans import KeptPlan
from pyrite.cluster.light.registry import Executions
from pyrite.context import NamedCollection
from pyrite.engine.failure import Failed
from pyrite.wire import messages as m
from pyrite.wire.wire import Connection

if TYPE_CHECKING:
    from pyrite.cluster.member import Member

CHECK_SECONDS: Final = 1.0
ACK_SECONDS: Final = PERIOD / 1e9
MOST_KEPT: Final = 2_000
"""Figures of ended parts. Each is some hundred bytes, or some thousand."""
MOST_RECENT: Final = 4
LET_GO_SECONDS: Final = 1.0
ASKED_SECONDS: Final = 60.0


class Parts:
    def __init__(self, member: Member, clock: Callable[[], float] = time.monotonic) -> None:
        self._member = member
        self._clock = clock
        self.executions: Executions[Participant] = Executions(Participant)
        self._acking: set[bytes] = set()
        """The executions whose senders got a first ack. They get one every period."""
        self._next_ack = self._next_check = 0.0
        self._kept: OrderedDict[bytes, PartFigures] = OrderedDict()
        """The figures of parts that have just ended, for those who ask late."""
        self._recent: deque[Participant] = deque(maxlen=MOST_RECENT)
        """Short parts that have just ended while nobody asked. What their processors hold is freed
        a moment later."""
        self._let_go = math.inf
        self._asked = -math.inf
        """When somebody asked for figures."""

    # Start and end.

    def on_init(self, connection: Connection, message: m.Init) -> None:
        def answer(outcome: Outcome) -> None:
            try:
                packed = outcome.packed()
            except Exception as error:  # what a sink's writer returned cannot be pickled
                packed = Outcome.failed(Failed(error), self._member.address).packed()
            connection.send(m.Answer(message.execution, packed))

        plan = self._member.plan_for(connection, message)
        if plan is None:
            return
        try:
            order = Order.unpacked(message.order)
        except Exception as error:
            answer(Outcome.failed(Failed(error), self._member.address))
        else:
            self.begin(message.execution, connection.peer.address, plan, order, answer)

    def begin(
        self,
        id: bytes,
        coordinator: str,
        plan: KeptPlan,
        order: Order,
        answer: Callable[[Outcome], None],
    ) -> None:
        """Runs a part, with the data that arrived before, and answers when it has ended. A part
        that was cancelled before is not run."""
        participant = self.executions.init(id, coordinator, self._clock())
        if participant is None:
            answer(Outcome(cancelled=True))
            return

        def ended(outcome: Outcome) -> None:
            self.executions.ended(id, self._clock(), well=outcome.is_well)
            self._acking.discard(id)
            answer(outcome)
            if not outcome.metrics:
                self._has_ended(participant)

        member = self._member
        peers: dict[int, Connection] = {}
        for index, (address, incarnation) in enumerate(order.members):
            if index == order.index:
                continue
            peer = member.peers.get(address)
            if peer is None or peer.peer.incarnation != incarnation:
                ended(not_there(address, member.missing(address)))
                return
            peers[index] = peer
        try:
            collections, flush = member.collections_for_execution()
            participant.begin(
                order,
                plan,
                peers,
                service=member.service,
                collections=collections,
                flush=flush,
                on_end=lambda outcome: member.on_thread(lambda: ended(outcome)),
            )
        except Exception as error:  # for example, no thread can be started
            ended(Outcome.failed(Failed(error), member.address))
            return
        self._send_acks((id,), first=True)

    def take_snapshots(
        self,
        id: bytes,
        coordinator: str,
        reads: Sequence[NamedCollection],
        index: int,
        count: int,
    ) -> Future[None]:
        """Before the init: keeps what the sources of an execution will read here."""
        participant = self.executions.data(id, self._clock())
        if participant is not None:
            participant.snapshots.coordinator = coordinator
        share = self._member.collections.share
        taken: Future[None] = Future()

        def take() -> None:
            if participant is not None:
                participant.snapshots.take(
                    reads, lambda kind, name: share(kind, name, index, count)
                )
            taken.set_result(None)

        if not self._member.collections_may_block:
            take()
            return taken
        try:
            self._member.service.threads.run(take)
        except RuntimeError as error:  # no thread can be started
            taken.set_exception(error)
        return taken

    def figures(self, id: bytes) -> PartFigures | None:
        """Of a part that runs here, or has just ended."""
        self._asked = self._clock()
        self._keep_recent()
        participant = self.executions.find(id)
        return self._kept.get(id) if participant is None else participant.figures()

    def _has_ended(self, participant: Participant) -> None:
        """A short part has ended, without telling its figures. They are kept only if somebody asks
        for such figures these days, since to gather them takes a part of a millisecond."""
        if self._clock() - self._asked < ASKED_SECONDS:
            self._member.wire.flush()  # nobody waits for them: the answer goes first
            self._keep(participant)
        else:
            if not self._recent:
                self._let_go = time.monotonic() + LET_GO_SECONDS
            self._recent.append(participant)

    def _keep_recent(self) -> None:
        while self._recent:
            self._keep(self._recent.popleft())

    def _keep(self, participant: Participant) -> None:
        figures = participant.last_figures()
        if figures is not None:
            self._kept[participant.id] = figures
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)

    def cancel(self, id: bytes) -> None:
        """Stops a part. If its init has not come yet, it will be refused."""
        participant = self.executions.cancel(id, self._clock())
        if participant is not None:
            participant.halt.cancel()
        for sender in self._member.want_no_more(
            lambda _, message: isinstance(message, m.Init) and message.execution == id
        ):
            sender.send(m.Answer(id, Outcome(cancelled=True).packed()))

    def member_lost(self, address: str, reason: str) -> None:
        for participant in self.executions.coordinator_gone(address):
            participant.halt.cancel()
            self._cancel_elsewhere(participant)
        needing = [each for each in self.executions.running() if each.uses(address)]
        # The rest of what it sent does not come, also if it connects again before the init.
        for participant in self.executions.waiting():
            if participant.holds_something_of(address):
                needing.append(participant)
                self.executions.is_lost(participant.id, self._clock())
        for participant in needing:
            lost = MemberLost(f"member {address} was lost: {reason}")
            participant.halt.fail(Failed(lost))

    def _cancel_elsewhere(self, participant: Participant) -> None:
        """Tells the other members that an execution ends. One of them may hold data for it whose
        init was never sent."""
        for address in participant.addresses:
            peer = self._member.peers.get(address)
            if peer is not None:
                peer.send(m.Cancel(participant.id))

    def stop_all(self) -> None:
        """Lets all parts fail: nobody has cancelled them, this member ends."""
        failed = Failed(MemberLost(f"member {self._member.address} is shutting down"))
        for participant in self.executions.running():
            participant.halt.fail(failed)

    # Messages.

    def on_packet(self, connection: Connection, message: m.PacketMessage) -> None:
        participant = self.executions.data(message.execution, self._clock())
        if participant is not None:
            waits = participant.arrivals.packet(connection.peer.address, message)
            if waits and participant.has_begun:
                self._send_acks((participant.id,), first=True)

    def on_done(self, connection: Connection, message: m.DoneMessage) -> None:
        participant = self.executions.data(message.execution, self._clock())
        if participant is not None:
            participant.arrivals.done(connection.peer.address, message.edge)

    def on_ack(self, connection: Connection, message: m.Ack) -> None:
        for id, limits in message.limits:
            participant = self.executions.find(id)
            if participant is not None:
                for edge, limit in limits:
                    participant.acked(connection.peer.address, edge, limit)

    def on_unknown(self, connection: Connection, message: m.Unknown) -> None:
        self._stop_unknown(connection.peer.address, message.executions)

    # Periodic work.

    def do_what_is_due(self, now: float) -> None:
        if self._acking and now >= self._next_ack:
            self._next_ack = now + ACK_SECONDS
            self._send_acks(self._acking)
        if not self.executions.is_idle and now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            self.executions.tick(self._clock())
            self._check()
        if self._recent and now >= self._let_go:
            self._keep_recent()

    @property
    def next_due(self) -> float | None:
        times = [self._next_ack] if self._acking else []
        if not self.executions.is_idle:
            times.append(self._next_check)
        if self._recent:
            times.append(self._let_go)
        return min(times, default=None)

    def _send_acks(self, ids: Iterable[bytes], *, first: bool = False) -> None:
        """Sends acks, one message to each member. With `first`, only to senders that wait for their
        first ack."""
        now = time.monotonic_ns()
        by_member: dict[str, list[tuple[bytes, tuple[tuple[int, int], ...]]]] = {}
        for id in tuple(ids):
            participant = self.executions.find(id)
            if participant is not None:
                for address, limits in participant.arrivals.acks(now, first=first).items():
                    by_member.setdefault(address, []).append((id, tuple(limits)))
                    self._acking.add(id)
        for address, limits_of in by_member.items():
            peer = self._member.peers.get(address)
            if peer is not None:
                peer.send(m.Ack(tuple(limits_of)))

    def _check(self) -> None:
        """Asks coordinators whether they still know their executions that run here."""
        for address, ids in self.executions.to_check().items():
            peer = self._member.peers.get(address)
            if address == self._member.address:
                self._stop_unknown(address, self._member.jobs.unknown(ids))
            elif peer is not None:
                peer.send(m.Check(tuple(ids)))

    def _stop_unknown(self, coordinator: str, ids: Collection[bytes]) -> None:
        for participant in self.executions.unknown(coordinator, ids):
            participant.halt.cancel()


def not_there(address: str, why: str) -> Outcome:
    """The outcome of an execution when a member that it needs is missing."""
    return Outcome.failed(Failed(MemberLost(f"member {address} {why}")), address)
