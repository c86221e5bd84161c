"""The light jobs that a member coordinates, from a client's submit to the answer."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from pyrite.cluster.light.coordination import Coordination, OnTaken
from pyrite.cluster.light.figures import PartFigures
from pyrite.cluster.light.outcomes import Order, Outcome
from pyrite.cluster.light.parts import MOST_KEPT, not_there
from pyrite.cluster.light.plans import KeptPlan
from pyrite.cluster.light.watched import Watched
from pyrite.context import NamedCollection
from pyrite.engine.failure import Failed
from pyrite.wire import messages as m
from pyrite.wire.wire import Connection

if TYPE_CHECKING:
    from pyrite.cluster.member import Member


EARLY_CANCEL_SECONDS: Final = 300.0
"""How long a client's cancel that overtook its submit is remembered. The submit may be late, behind
a large plan on a slow network, and the checker does not cover clients."""


Members = tuple[tuple[str, str], ...]
"""The address and the incarnation of each."""
NOBODY: Final[tuple[Watched, Members]] = Watched(), ()


class ListedJob(NamedTuple):
    """A light job that runs, for those who ask."""

    id: str
    job_id: str
    member: str
    """The address of its coordinator."""
    client: str
    """The incarnation of the client that submitted it."""


class Jobs:
    def __init__(self, member: Member, clock: Callable[[], float] = time.monotonic) -> None:
        self._member = member
        self._clock = clock
        self._cancelled_early: dict[bytes, float] = {}
        """By id, when the client's cancel came. The oldest come first."""
        self._running: dict[bytes, Coordination] = {}
        self._clients: dict[bytes, Connection] = {}
        self._ended_jobs: OrderedDict[bytes, tuple[Watched, Members]] = OrderedDict()
        """Those that have just ended, for who asks for their figures late."""
        self._joined: dict[bytes, list[Future[bytes | None]]] = {}
        """By execution, who else waits for its outcome."""

    def listed(self) -> list[ListedJob]:
        clients = self._clients.copy()
        return [
            ListedJob(id.hex(), job.job_id, self._member.address, clients[id].peer.incarnation)
            for id, job in self._running.copy().items()
            if id in clients
        ]

    def join(self, id: bytes) -> Future[bytes | None]:
        """The outcome of an execution, packed, when it has ended; None if it does not run here. Any
        thread may call this, and `cancel`."""
        future: Future[bytes | None] = Future()

        def join() -> None:
            if id in self._running:
                self._joined.setdefault(id, []).append(future)
            else:
                future.set_result(None)

        self._member.on_thread(join)
        return future

    def cancel(self, id: bytes) -> None:
        """Cancels an execution that is coordinated here."""

        def cancel() -> None:
            if id in self._running:
                self._running[id].cancel()

        self._member.on_thread(cancel)

    def figures(self, id: bytes) -> Future[list[PartFigures]]:
        """What the parts of an execution that is coordinated here, or has just ended, have done so
        far. Any thread may call this."""
        future: Future[list[PartFigures]] = Future()

        def ask() -> None:
            job = self._running.get(id)
            watched, members = (
                (job.watched, job.members) if job is not None else self._ended_jobs.get(id, NOBODY)
            )
            asked = watched.ask(len(members), partial(self._ask_part, id, members))
            asked.add_done_callback(lambda done: future.set_result(done.result()))

        self._member.on_thread(ask)
        return future

    def _ask_part(
        self,
        id: bytes,
        members: Members,
        index: int,
        told: Callable[[PartFigures | None], None],
    ) -> None:
        member = self._member
        address, _ = members[index]
        if address == member.address:
            told(member.parts.figures(id))
            return
        asked = member.start_call(address, ("job", id.hex(), "part", ()))

        def replied() -> None:
            told(None if asked.exception() else asked.result())

        # Posted: replies also come while a processor waits for one.
        asked.add_done_callback(lambda _: member.post(replied))

    def unknown(self, ids: Iterable[bytes]) -> tuple[bytes, ...]:
        """The executions among these that are not coordinated here."""
        return tuple(id for id in ids if id not in self._running)

    def plan(self, hash: bytes) -> KeptPlan | None:
        """The plan of a running job, even if the cache has dropped it."""
        return next((job.plan for job in self._running.values() if job.plan_hash == hash), None)

    def on_submit(self, connection: Connection, message: m.Submit) -> None:
        member, id = self._member, message.execution

        def answer(outcome: Outcome) -> None:
            connection.send(m.Answer(id, outcome.packed()))

        if self._cancelled_early.pop(id, None) is not None:
            answer(Outcome(cancelled=True))
            return
        if member.is_closing:
            answer(not_there(member.address, "is shutting down"))
            return
        objection = member.peers.objection
        if objection is not None:
            answer(not_there(member.address, objection))
            return
        plan = member.plan_for(connection, message)
        if plan is None:
            return
        members = []
        for address, incarnation in member.peers.incarnations:
            if incarnation is None:
                answer(not_there(address, member.missing(address)))
                return
            members.append((address, incarnation))
        job = Coordination(
            id,
            message.job.hex(),
            plan,
            message.plan,
            address=member.address,
            members=members,
            parallelism=len(member.service.workers),
            collections=member.collections,
            run=member.service.threads.run,
            post=member.post,
            take_snapshots=partial(self._take_snapshots, id),
            send=partial(self._send_init, id, message.plan, plan),
            cancel=partial(self._send_cancel, id),
            on_end=lambda outcome: member.on_thread(lambda: self._ended(id, answer, outcome)),
        )
        self._running[id] = job
        self._clients[id] = connection
        try:
            job.begin()
        except Exception as error:  # for example, no thread can be started
            self._ended(id, answer, Outcome.failed(Failed(error), member.address))

    def on_answer(self, connection: Connection, message: m.Answer) -> None:
        job = self._running.get(message.execution)
        if job is not None:
            addresses = [address for address, _ in job.members]
            index = addresses.index(connection.peer.address)
            try:
                outcome = Outcome.unpacked(message.outcome)
            except Exception as error:  # the class of what a sink's writer returned is not here
                outcome = Outcome.failed(Failed(error), connection.peer.address)
            job.answered(index, outcome)

    def on_check(self, connection: Connection, message: m.Check) -> None:
        unknown = self.unknown(message.executions)
        if unknown:
            connection.send(m.Unknown(unknown))

    def on_cancel(self, connection: Connection, message: m.Cancel) -> None:
        """From a client, cancels a job; from a coordinator, this member's part of one."""
        if self._clients.get(message.execution) is connection:
            self._running[message.execution].cancel()
        elif connection.peer.address:
            self._member.parts.cancel(message.execution)
        else:
            self._remember_cancel(message.execution)

    def _remember_cancel(self, id: bytes) -> None:
        now = self._clock()
        while self._cancelled_early:
            oldest, at = next(iter(self._cancelled_early.items()))
            if now - at < EARLY_CANCEL_SECONDS:
                break
            del self._cancelled_early[oldest]
        self._cancelled_early[id] = now

    def client_lost(self, connection: Connection) -> None:
        for id, client in list(self._clients.items()):
            if client is connection:  # nobody is left to receive the outcome
                self._running[id].cancel()

    def member_lost(self, address: str, reason: str) -> None:
        for job in list(self._running.values()):
            job.lost(address, reason)

    def _ended(self, id: bytes, answer: Callable[[Outcome], None], outcome: Outcome) -> None:
        job = self._running.pop(id)
        job.watched.answer()
        self._ended_jobs[id] = job.watched, job.members
        if len(self._ended_jobs) > MOST_KEPT:
            self._ended_jobs.popitem(last=False)
        del self._clients[id]
        answer(outcome)
        for joined in self._joined.pop(id, ()):
            joined.set_result(outcome.packed())

    def _take_snapshots(
        self, id: bytes, reads: Sequence[NamedCollection], on_taken: OnTaken
    ) -> None:
        """Lets all members keep what an execution will read there."""
        member, members = self._member, self._running[id].members
        futures = []
        for index, (address, _) in enumerate(members):
            of = (member.address, tuple(reads), index, len(members))
            if address == member.address:
                futures.append(member.parts.take_snapshots(id, *of))
            else:
                futures.append(member.start_call(address, ("snapshots", id.hex(), "", of)))
        left = len(futures)

        def one_taken() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                errors = [future.exception() for future in futures]
                on_taken(next(filter(None, errors), None))

        for future in futures:
            # Posted: replies also come while a processor waits for one.
            future.add_done_callback(lambda _: member.post(one_taken))

    def _send_init(self, id: bytes, hash: bytes, plan: KeptPlan, index: int, order: Order) -> None:
        member, job = self._member, self._running[id]
        address, _ = order.members[index]
        if address == member.address:
            member.wire.flush()  # the others start meanwhile
            member.parts.begin(id, address, plan, order, partial(job.answered, index))
            return
        peer = member.peers.get(address)
        if peer is None:  # lost while the meta-suppliers were called
            job.lost(address, "the connection was closed")
            return
        member.send_plan(peer, hash, plan)
        peer.send(m.Init(id, hash, order.packed()))

    def _send_cancel(self, id: bytes, index: int) -> None:
        address, _ = self._running[id].members[index]
        peer = self._member.peers.get(address)
        if address == self._member.address:
            self._member.parts.cancel(id)
        elif peer is not None:
            peer.send(m.Cancel(id))
