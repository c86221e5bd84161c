"""A member: an execution service, the wire to the other members and to clients, and what happens
when a message arrives.

Everything here runs on one thread, that of the wire; other threads hand over what they have to say
by `post`. Where the cooperative pool has one worker, that is the thread: it parks in the poll of
the sockets, so that a message wakes it at once.
"""

from __future__ import annotations

import itertools
import logging
import pickle
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

import cloudpickle

from pyrite.cluster import messages as m
from pyrite.cluster.coordination import Coordination
from pyrite.cluster.keys import Keys
from pyrite.cluster.outcomes import MemberLost, Order, Outcome
from pyrite.cluster.participant import Participant
from pyrite.cluster.plans import KeptPlan, Plans
from pyrite.cluster.registry import Executions
from pyrite.cluster.sockets import Limits
from pyrite.cluster.storage import MemberCollections, Request, served
from pyrite.cluster.window import PERIOD
from pyrite.cluster.wire import (
    Connected,
    Connection,
    Event,
    Identity,
    Lost,
    NotReached,
    Received,
    Wire,
)
from pyrite.collections import MemoryCollections
from pyrite.engine.failure import Failed
from pyrite.engine.parking import Parking
from pyrite.engine.service import ExecutionService, default_pool_size
from pyrite.errors import PyriteError

logger = logging.getLogger("pyrite.cluster")

CHECK_SECONDS: Final = 1.0
ACK_SECONDS: Final = PERIOD / 1e9
FIRST_REDIAL_SECONDS: Final = 0.02
LAST_REDIAL_SECONDS: Final = 0.2


class Member:
    """One member of a cluster. `bind` it, tell it all members by `join`, and `close` it."""

    def __init__(
        self,
        keys: Keys | None,
        *,
        cooperative_threads: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.wire = Wire(keys, Identity(incarnation=secrets.token_hex(8)), limits)
        self.executions: Executions[Participant] = Executions(Participant)
        self._stored = MemoryCollections()
        self.collections = MemberCollections(
            self._stored, lambda: self.address, lambda: self.addresses, self.call
        )
        self._pool_size = cooperative_threads or default_pool_size()
        self._peers: dict[str, Connection] = {}
        """The other members that are connected, by address."""
        self._plans = Plans()
        self._coordinated: dict[bytes, Coordination] = {}
        self._clients_of: dict[bytes, Connection] = {}
        self._sent_plans: dict[Connection, set[bytes]] = {}
        self._wanting: dict[bytes, list[tuple[Connection, m.Init | m.Submit]]] = {}
        """By hash, what waits for a plan."""
        self._calls: dict[int, tuple[Connection, Future[Any]]] = {}
        self._numbers = itertools.count()
        self._posted: deque[Callable[[], None]] = deque()
        self._deferred: deque[Event] = deque()
        self._acking: set[bytes] = set()
        """The executions with senders that were acked once, and so are acked every period."""
        self._redial: dict[str, float] = {}
        """Members to dial, and when."""
        self._waits: dict[str, float] = {}
        """How long to wait before the next try, should one fail."""
        self._next_ack = self._next_check = 0.0
        self._on_complete: Callable[[bool], None] = lambda complete: None
        self._thread = 0
        self._closing = False
        self._wire_thread: threading.Thread | None = None
        self.service: ExecutionService

    # Life.

    def bind(self, host: str, port: int) -> int:
        """Listens. Returns the port."""
        return self.wire.listen(host, port)

    def join(
        self, address: str, members: tuple[str, ...], on_complete: Callable[[bool], None]
    ) -> None:
        """Becomes one of the members, and starts to work. `on_complete` is called whenever all of
        them are connected, with True, and when one is lost, with False."""
        self.wire.me = Identity(
            address=address, members=members, incarnation=self.wire.me.incarnation
        )
        self._on_complete = on_complete
        # The lower-numbered of two members dials.
        for higher in members[members.index(address) + 1 :]:
            self._redial[higher], self._waits[higher] = 0.0, FIRST_REDIAL_SECONDS
        parking = NetworkParking(self)
        if self._pool_size == 1:
            self.service = ExecutionService(1, parking=parking)
        else:
            self.service = ExecutionService(self._pool_size)
            self._wire_thread = threading.Thread(
                target=parking.run, name="pyrite-wire", daemon=True
            )
            self._wire_thread.start()
        if len(members) == 1:
            self.post(lambda: on_complete(True))

    @property
    def address(self) -> str:
        return self.wire.me.address

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.wire.me.members

    def close(self) -> None:
        """Stops abruptly: light jobs are not waited for."""
        self._closing = True
        for participant in self.executions.running():
            participant.halt.cancel()
        self.wire.wake()
        self.service.close()
        if self._wire_thread is not None:
            self._wire_thread.join()
        self.wire.close()

    # On the member's thread.

    def own(self) -> None:
        self._thread = threading.get_ident()
        self.wire.own()

    def is_own_thread(self) -> bool:
        return threading.get_ident() == self._thread

    def turn(self) -> bool:
        """Deals with what has arrived and what is due. Whether there was anything."""
        events = self.wire.turn()
        busy = bool(events or self._posted)
        while self._deferred:
            self._handle(self._deferred.popleft())
        for event in events:
            self._handle(event)
        while self._posted:
            self._posted.popleft()()
        self._do_what_is_due()
        return busy

    def park(self, seconds: float | None) -> None:
        if self._posted or self._deferred:
            return
        due = self._next_due()
        if due is not None:
            left = max(0.0, due - time.monotonic())
            seconds = left if seconds is None else min(seconds, left)
        self.wire.park(seconds)

    def post(self, call: Callable[[], None]) -> None:
        """Lets the member's thread call something. Any thread may call this."""
        self._posted.append(call)
        if not self.is_own_thread():
            self.wire.wake()

    def _handle(self, event: Event) -> None:
        try:
            if isinstance(event, Connected):
                self._connected(event.connection)
            elif isinstance(event, Lost):
                self._lost(event.connection, event.reason)
            elif isinstance(event, NotReached):
                self._not_reached(event.address, event.reason)
            else:
                self._HANDLERS[type(event.message)](self, event.connection, event.message)
        except Exception:
            logger.exception("member %s could not deal with a message", self.address)

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        if self._acking and now >= self._next_ack:
            self._next_ack = now + ACK_SECONDS
            self._send_acks(self._acking)
        if not self.executions.is_idle and now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            self.executions.tick(now)
            self._check()
        if self._redial:
            for address, at in list(self._redial.items()):
                if now >= at:
                    del self._redial[address]
                    self.wire.dial(address)

    def _next_due(self) -> float | None:
        times = [*self._redial.values()]
        if self._acking:
            times.append(self._next_ack)
        if not self.executions.is_idle:
            times.append(self._next_check)
        return min(times, default=None)

    # Other members come and go.

    def _connected(self, connection: Connection) -> None:
        address = connection.peer.address
        self._sent_plans[connection] = set()
        if not address:
            return  # a client
        before = self._peers.get(address)
        if before is not None:
            self.wire.drop(before, "it has connected anew")
            self._lost(before, "it has connected anew")
        self._peers[address] = connection
        self._waits[address] = FIRST_REDIAL_SECONDS
        if len(self._peers) == len(self.addresses) - 1:
            self._on_complete(True)

    def _not_reached(self, address: str, reason: str) -> None:
        logger.debug("member %s does not reach %s: %s", self.address, address, reason)
        wait = self._waits[address]
        self._redial[address] = time.monotonic() + wait
        self._waits[address] = min(2 * wait, LAST_REDIAL_SECONDS)

    def _lost(self, connection: Connection, reason: str) -> None:
        self._sent_plans.pop(connection, None)
        self._fail_calls(connection, reason)
        for waiting in self._wanting.values():
            waiting[:] = [each for each in waiting if each[0] is not connection]
        address = connection.peer.address
        if not address:
            for id, client in list(self._clients_of.items()):
                if client is connection:  # nobody is left who could be told
                    self._coordinated[id].cancel()
            return
        if self._peers.get(address) is not connection:
            return
        del self._peers[address]
        self._on_complete(False)
        logger.info("member %s lost %s: %s", self.address, address, reason)
        for participant in self.executions.coordinator_gone(address):
            participant.halt.cancel()
        lost = MemberLost(f"member {address} was lost: {reason}")
        for participant in self.executions.running():
            if participant.uses(address):
                participant.halt.fail(Failed(lost))
        for coordination in list(self._coordinated.values()):
            coordination.lost(address, reason)
        if self.addresses.index(address) > self.addresses.index(self.address):
            self._redial[address] = time.monotonic()

    # Coordinating.

    def _on_submit(self, connection: Connection, message: m.Submit) -> None:
        id = message.execution
        answer = partial(self._answer_client, connection, id)
        if self.executions.was_cancelled(id, time.monotonic()):
            answer(Outcome(cancelled=True))
            return
        if self._closing:
            answer(_not_there(self.address, "is shutting down"))
            return
        plan = self._plan_for(connection, message, message.plan)
        if plan is None:
            return
        members = []
        for address in self.addresses:
            if address == self.address:
                members.append((address, self.wire.me.incarnation))
            elif address in self._peers:
                members.append((address, self._peers[address].peer.incarnation))
            else:
                answer(_not_there(address, f"is not connected to member {self.address}"))
                return
        coordination = Coordination(
            id,
            message.job.hex(),
            plan,
            address=self.address,
            members=members,
            parallelism=self._pool_size,
            collections=self.collections,
            run=self.service.threads.run,
            post=self.post,
            send=partial(self._send_init, id, message.plan, plan),
            cancel=partial(self._send_cancel, id),
            on_end=lambda outcome: self._on_thread(
                lambda: self._coordination_ended(id, answer, outcome)
            ),
        )
        self._coordinated[id] = coordination
        self._clients_of[id] = connection
        coordination.begin()

    def _coordination_ended(
        self, id: bytes, answer: Callable[[Outcome], None], outcome: Outcome
    ) -> None:
        del self._coordinated[id], self._clients_of[id]
        answer(outcome)

    def _answer_client(self, connection: Connection, id: bytes, outcome: Outcome) -> None:
        connection.send(m.Answer(id, outcome.packed()))

    def _send_init(self, id: bytes, hash: bytes, plan: KeptPlan, index: int, order: Order) -> None:
        address, _ = order.members[index]
        if address == self.address:
            self._init(None, id, plan, order)
            return
        peer = self._peers.get(address)
        if peer is None:  # lost while the meta-suppliers were asked
            self._coordinated[id].lost(address, "the connection was closed")
            return
        if hash not in self._sent_plans[peer]:
            self._sent_plans[peer].add(hash)
            peer.send(m.PlanMessage(hash, plan.data))
        peer.send(m.Init(id, hash, order.packed()))

    def _send_cancel(self, id: bytes, index: int) -> None:
        address, _ = self._coordinated[id].members[index]
        if address == self.address:
            self._cancel_here(id)
        elif address in self._peers:
            self._peers[address].send(m.Cancel(id))

    def _on_answer(self, connection: Connection, message: m.Answer) -> None:
        coordination = self._coordinated.get(message.execution)
        if coordination is not None:
            addresses = [address for address, _ in coordination.members]
            index = addresses.index(connection.peer.address)
            coordination.answered(index, Outcome.unpacked(message.outcome))

    def _on_check(self, connection: Connection, message: m.Check) -> None:
        unknown = tuple(id for id in message.executions if id not in self._coordinated)
        if unknown:
            connection.send(m.Unknown(unknown))

    # Taking part.

    def _on_init(self, connection: Connection, message: m.Init) -> None:
        plan = self._plan_for(connection, message, message.plan)
        if plan is not None:
            self._init(connection, message.execution, plan, Order.unpacked(message.order))

    def _init(
        self, coordinator: Connection | None, id: bytes, plan: KeptPlan, order: Order
    ) -> None:
        name = coordinator.peer.address if coordinator is not None else self.address
        participant = self.executions.init(id, name, time.monotonic())

        def answer(outcome: Outcome) -> None:
            if coordinator is not None:
                coordinator.send(m.Answer(id, outcome.packed()))
            elif id in self._coordinated:
                self._coordinated[id].answered(order.index, outcome)

        if participant is None:
            answer(Outcome(cancelled=True))
            return

        def ended(outcome: Outcome) -> None:
            self.executions.ended(id, time.monotonic(), well=outcome.is_well)
            self._acking.discard(id)
            answer(outcome)

        peers: dict[int, Connection] = {}
        for index, (address, incarnation) in enumerate(order.members):
            if index == order.index:
                continue
            peer = self._peers.get(address)
            if peer is None or peer.peer.incarnation != incarnation:
                ended(_not_there(address, f"is not connected to member {self.address}"))
                return
            peers[index] = peer
        participant.begin(
            order,
            plan,
            peers,
            service=self.service,
            collections=self.collections,
            on_end=lambda outcome: self._on_thread(lambda: ended(outcome)),
        )
        self._send_acks((id,), first=True)

    def _on_packet(self, connection: Connection, message: m.PacketMessage) -> None:
        participant = self.executions.data(message.execution, time.monotonic())
        if participant is None:
            return
        waits = participant.arrivals.packet(connection.peer.address, message)
        if waits and participant.has_begun:
            self._send_acks((participant.id,), first=True)

    def _on_done(self, connection: Connection, message: m.DoneMessage) -> None:
        participant = self.executions.data(message.execution, time.monotonic())
        if participant is not None:
            participant.arrivals.done(connection.peer.address, message.edge)

    def _on_ack(self, connection: Connection, message: m.Ack) -> None:
        for id, limits in message.limits:
            participant = self.executions.find(id)
            if participant is not None:
                for edge, limit in limits:
                    participant.acked(connection.peer.address, edge, limit)

    def _send_acks(self, ids: Iterable[bytes], *, first: bool = False) -> None:
        """Tells senders how far they may go: one message for each member. With `first`, only those
        that wait for their first ack."""
        now = time.monotonic_ns()
        by_member: dict[str, list[tuple[bytes, tuple[tuple[int, int], ...]]]] = {}
        for id in tuple(ids):
            participant = self.executions.find(id)
            if participant is None:
                continue
            for address, limits in participant.arrivals.acks(now, first=first).items():
                by_member.setdefault(address, []).append((id, tuple(limits)))
                self._acking.add(id)
        for address, limits_of in by_member.items():
            if address in self._peers:
                self._peers[address].send(m.Ack(tuple(limits_of)))

    def _on_cancel(self, connection: Connection, message: m.Cancel) -> None:
        coordination = self._coordinated.get(message.execution)
        if coordination is not None and self._clients_of[message.execution] is connection:
            coordination.cancel()
        else:
            self._cancel_here(message.execution)

    def _cancel_here(self, id: bytes) -> None:
        participant = self.executions.cancel(id, time.monotonic())
        if participant is not None:
            participant.halt.cancel()

    def _check(self) -> None:
        """Asks coordinators whether they still know the executions that are here from them."""
        for address, ids in self.executions.to_check().items():
            if address == self.address:
                self._stop_unknown(address, [id for id in ids if id not in self._coordinated])
            elif address in self._peers:
                self._peers[address].send(m.Check(tuple(ids)))

    def _on_unknown(self, connection: Connection, message: m.Unknown) -> None:
        self._stop_unknown(connection.peer.address, message.executions)

    def _stop_unknown(self, coordinator: str, ids: Collection[bytes]) -> None:
        for participant in self.executions.unknown(coordinator, ids):
            participant.halt.cancel()

    # Plans.

    def _plan_for(
        self, connection: Connection, message: m.Init | m.Submit, hash: bytes
    ) -> KeptPlan | None:
        """The plan that a message names; None if it must be asked for first."""
        plan = self._plans.get(hash)
        if plan is None:
            self._wanting.setdefault(hash, []).append((connection, message))
            connection.send(m.WantPlan(hash))
        return plan

    def _on_plan(self, connection: Connection, message: m.PlanMessage) -> None:
        self._plans.add(message.plan, message.dag)
        for waiting, wanting in self._wanting.pop(message.plan, ()):
            if isinstance(wanting, m.Init):
                self._on_init(waiting, wanting)
            else:
                self._on_submit(waiting, wanting)

    def _on_want_plan(self, connection: Connection, message: m.WantPlan) -> None:
        plan = self._plans.get(message.plan)
        if plan is not None:
            connection.send(m.PlanMessage(message.plan, plan.data))

    # Calls.

    def call(self, address: str, request: Request) -> Any:
        """Has a member do something, and waits for its reply. Any thread may call this."""
        if address == self.address:
            return self._serve_here(request)
        future: Future[Any] = Future()
        payload = cloudpickle.dumps(request)
        if not self.is_own_thread():
            self.post(lambda: self._send_call(address, payload, future))
            return future.result()
        self._send_call(address, payload, future)
        while not future.done():
            self._pump()
            if not future.done():
                self.wire.park(None)
        return future.result()

    def _pump(self) -> None:
        """Lets the wire work while a call on its own thread waits for a reply. What could itself
        come to wait is put off."""
        for event in self.wire.turn():
            if isinstance(event, Lost):
                self._fail_calls(event.connection, event.reason)
            if isinstance(event, Received) and isinstance(event.message, _NEVER_WAITING):
                self._handle(event)
            else:
                self._deferred.append(event)

    def _send_call(self, address: str, payload: bytes, future: Future[Any]) -> None:
        peer = self._peers.get(address)
        if peer is None:
            future.set_exception(
                MemberLost(f"member {address} is not connected to member {self.address}")
            )
            return
        number = next(self._numbers)
        self._calls[number] = peer, future
        peer.send(m.Call(number, payload))

    def _on_reply(self, connection: Connection, message: m.Reply) -> None:
        _, future = self._calls.pop(message.number, (None, None))
        if future is not None:
            well, result = pickle.loads(message.result)
            (future.set_result if well else future.set_exception)(result)

    def _fail_calls(self, connection: Connection, reason: str) -> None:
        for number, (to, future) in list(self._calls.items()):
            if to is connection:
                del self._calls[number]
                future.set_exception(MemberLost(f"{connection.name} was lost: {reason}"))

    def _on_call(self, connection: Connection, message: m.Call) -> None:
        if connection.peer.address:  # another member: about what is here
            self._serve(connection, message, self._serve_here)
        else:  # a client: about what is anywhere
            self.service.threads.run(lambda: self._serve(connection, message, self._serve_client))

    def _serve_here(self, request: Request) -> Any:
        if request[0] == "member":
            return getattr(self, _ABOUT_A_MEMBER[request[2]])()
        return served(self._stored, request)

    def _light_jobs(self) -> list[tuple[str, str]]:
        """The executions that it coordinates, with its address."""
        return [(id.hex(), self.address) for id in tuple(self._coordinated)]

    def _execution_count(self) -> int:
        """How many executions it takes part in, or holds data for."""
        return len(self.executions)

    def _contents(self) -> list[Any]:
        """What is stored here."""
        return self._stored.contents()

    def _serve_client(self, request: Request) -> Any:
        if request[0] == "member":
            return [
                self.call(address, request)
                for address in self.addresses
                if address == self.address or address in self._peers
            ]
        return served(self.collections, request)

    def _serve(
        self, connection: Connection, message: m.Call, serve: Callable[[Request], Any]
    ) -> None:
        try:
            result = cloudpickle.dumps((True, serve(pickle.loads(message.request))))
        except BaseException as error:
            result = _pickled_error(error)
        connection.send(m.Reply(message.number, result))

    def _on_thread(self, call: Callable[[], None]) -> None:
        """Calls on the member's thread: at once if this is it."""
        if self.is_own_thread():
            call()
        else:
            self.post(call)

    _HANDLERS: Final[dict[type[Any], Callable[[Any, Connection, Any], None]]] = {
        m.Submit: _on_submit,
        m.Init: _on_init,
        m.PlanMessage: _on_plan,
        m.WantPlan: _on_want_plan,
        m.PacketMessage: _on_packet,
        m.DoneMessage: _on_done,
        m.Ack: _on_ack,
        m.Answer: _on_answer,
        m.Cancel: _on_cancel,
        m.Check: _on_check,
        m.Unknown: _on_unknown,
        m.Call: _on_call,
        m.Reply: _on_reply,
    }


_ABOUT_A_MEMBER: Final = {
    "light_jobs": "_light_jobs",
    "execution_count": "_execution_count",
    "contents": "_contents",
}
"""What every member can be asked about itself."""

_NEVER_WAITING: Final = (m.Reply, m.Call, m.PacketMessage, m.DoneMessage, m.Ack)
"""Messages that can be dealt with while something waits: none of them comes to wait itself."""


class NetworkParking(Parking):
    """Lets the worker of a pool of one deal with the network between its rounds, and wait for
    it."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._owned = False

    def turn(self) -> bool:
        if not self._owned:
            self._owned = True
            self._member.own()
        return self._member.turn()

    def park(self, seconds: float | None) -> None:
        self._member.park(seconds)

    def wake(self) -> None:
        if not self._member.is_own_thread():  # which looks for itself before it parks
            self._member.wire.wake()

    def run(self) -> None:
        """On a thread of its own, where workers have better to do."""
        while not self._member._closing:
            if not self.turn():
                self.park(None)


def _not_there(address: str, why: str) -> Outcome:
    return Outcome.failed(Failed(MemberLost(f"member {address} {why}")), address)


def _pickled_error(error: BaseException) -> bytes:
    try:
        data: bytes = cloudpickle.dumps((False, error))
        pickle.loads(data)
    except Exception:
        data = cloudpickle.dumps((False, PyriteError(f"{type(error).__name__}: {error}")))
    return data
