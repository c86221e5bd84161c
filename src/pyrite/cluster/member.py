"""A member: an execution service, the wire to the other members and to clients, and what happens
when a message arrives.

Everything here runs on one thread, that of the wire; other threads hand over what they have to say
by `post`. Where the cooperative pool has one worker, that is the thread: it parks in the poll of
the sockets, so that a message wakes it at once.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final

from pyrite.cluster.calls import Calls, reply, reply_error
from pyrite.cluster.collections.notes import MemberNotes, Note, PartLost, check, there
from pyrite.cluster.collections.refused import RefusedCollections
from pyrite.cluster.collections.storage import (
    MemberCollections,
    Request,
    SharedCollections,
    served,
)
from pyrite.cluster.collections.writes import Writes
from pyrite.cluster.light.jobs import Jobs, ListedJob
from pyrite.cluster.light.outcomes import MemberLost, Outcome
from pyrite.cluster.light.parts import Parts
from pyrite.cluster.light.plans import KeptPlan, Plans, SentPlans
from pyrite.cluster.normal.driving import no_driver
from pyrite.cluster.normal.jobs import NormalJobs
from pyrite.cluster.peers import Peers
from pyrite.collections import MemoryCollections, redis_at
from pyrite.columns.packing.item_pickling import dumps_code
from pyrite.engine.failure import Failed
from pyrite.engine.parking import Parking
from pyrite.engine.service import LONGEST_PARK, ExecutionService, default_pool_size
from pyrite.exchange.driving import Driver
from pyrite.wire import messages as m
from pyrite.wire.identity import Identity
from pyrite.wire.keys import Keys
from pyrite.wire.sockets import Limits
from pyrite.wire.wire import (
    Connected,
    Connection,
    Event,
    Lost,
    NotReached,
    Received,
    Wire,
)

logger = logging.getLogger("pyrite.cluster")

CLOSING_SECONDS: Final = 2.0


class Member:
    """One member of a cluster. `bind` it, tell it all members by `join`, and `close` it."""

    peers: Peers
    service: ExecutionService

    def __init__(
        self,
        keys: Keys | None,
        *,
        cooperative_threads: int | None = None,
        limits: Limits | None = None,
        driver: Callable[[], Driver] = no_driver,
        collections: str = "memory",
        clock: Callable[[], float] = time.monotonic,
        cluster: str = "",
    ) -> None:
        self._redis = redis_at(collections)  # first: it may raise
        me = Identity(incarnation=secrets.token_hex(8), cluster=cluster)
        self.wire = Wire(keys, me, limits)
        self.parts = Parts(self, clock)
        self.jobs = Jobs(self, clock)
        self.normal = NormalJobs(self, driver)
        self._stored = MemoryCollections()
        self._notes = MemberNotes()
        self.collections: SharedCollections = self._redis or self._collections(
            self.call, self._check
        )
        self._for_clients = self._collections(self.call, lambda kind, name: None)
        """Clients make notes of their own: they may come to this member from one that died."""
        self._pool_size = cooperative_threads or default_pool_size()
        self._plans = Plans()
        self._sent_plans: dict[Connection, SentPlans] = {}
        self._wanting: dict[bytes, list[tuple[Connection, m.Init | m.Submit]]] = {}
        """By hash, what waits for a plan."""
        self._calls = Calls()
        self._unreached: dict[str, str] = {}
        """By address, why a member could not be connected to when it was dialed last."""
        self._posted: deque[Callable[[], None]] = deque()
        self._events: deque[Event] = deque()
        """Events of the wire that were not handled yet, in their order."""
        self._on_complete: Callable[[bool], None] = lambda complete: None
        self._thread = 0
        self._wire_thread: threading.Thread | None = None
        self.is_closing = False
        self._handlers: dict[type[Any], Callable[[Connection, Any], None]] = {
            m.Submit: self.jobs.on_submit,
            m.Drive: self.normal.on_drive,
            m.Answer: self.jobs.on_answer,
            m.Check: self.jobs.on_check,
            m.Cancel: self.jobs.on_cancel,
            m.Init: self.parts.on_init,
            m.PacketMessage: self.parts.on_packet,
            m.DoneMessage: self.parts.on_done,
            m.Ack: self.parts.on_ack,
            m.Unknown: self.parts.on_unknown,
            m.PlanMessage: self._on_plan,
            m.WantPlan: self._on_want_plan,
            m.Call: self._on_call,
            m.Reply: lambda connection, message: self._calls.replied(message),
        }

    @property
    def collections_may_block(self) -> bool:
        """Whether it may take long to read what this member has of collections."""
        return self._redis is not None

    def collections_for_execution(self) -> tuple[SharedCollections, Callable[[], None]]:
        """The collections as the processors of one execution use them, and what waits until they
        are written."""
        if self._redis is not None:
            own = self._redis.for_execution()
            return own, own.flush
        writes = Writes(self.start_call, self.wait)
        return self._collections(writes.tell, self._check), writes.flush

    def _collections(
        self, tell: Callable[[str, Request], Any], check: Callable[[str, str], None]
    ) -> SharedCollections:
        if self.wire.me.cluster:
            return RefusedCollections(self.wire.me.cluster)
        return MemberCollections(
            self._stored, lambda: self.address, lambda: self.addresses, self.call, tell, check
        )

    def _check(self, kind: str, name: str) -> None:
        self._note_use(kind, name)
        try:
            check(kind, name, self._notes.of(kind, name), self.peers.incarnations)
        except PartLost:
            self._tell_others(("told", kind, name, ()))
            raise

    def _note_use(self, kind: str, name: str) -> None:
        """Lets all members hear of a collection when it is first used."""
        if not self._notes.is_known(kind, name):
            members = self.peers.incarnations
            heard = {(kind, name): there(members)}
            self._notes.hear(heard, members)
            self._tell_others(("heard", "", "", (heard,)))

    def _tell_others(self, request: Request) -> None:
        for address in self.addresses:
            if address != self.address:
                self.start_call(address, request)

    # Life.

    def bind(self, host: str, port: int) -> int:
        """Listens. Returns the port."""
        return self.wire.listen(host, port)

    def join(
        self,
        address: str,
        members: tuple[str, ...],
        on_complete: Callable[[bool], None],
        *,
        make_peers: Callable[[Identity], Peers] = Peers,
    ) -> None:
        """Becomes one of the members, and starts to work. `on_complete` is called whenever all of
        them are connected, with True, and when one is lost, with False."""
        self.wire.me = replace(self.wire.me, address=address, members=members)
        self.peers = make_peers(self.wire.me)
        self._on_complete = on_complete
        if self.peers.is_complete:
            self.post(lambda: on_complete(True))
        parking = NetworkParking(self)
        if self._pool_size == 1:
            self.service = ExecutionService(1, parking=parking)
            self.service.workers[0].start()  # it serves the network also without tasklets
        else:
            self.service = ExecutionService(self._pool_size)
            self._wire_thread = threading.Thread(
                target=parking.run, name="pyrite-wire", daemon=True
            )
            self._wire_thread.start()

    @property
    def address(self) -> str:
        return self.wire.me.address

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.peers.addresses

    def close(self) -> None:
        """Stops abruptly: jobs are not waited for."""
        self.is_closing = True
        self.parts.stop_all()
        self.normal.close()
        self.wire.wake()
        self.service.close(wait=False)  # a call of the user's that blocks may never return
        for worker in self.service.workers:
            worker.join(timeout=CLOSING_SECONDS)
        if self._wire_thread is not None:
            self._wire_thread.join()
        self.wire.close()
        if self._redis is not None:
            self._redis.close()

    # Turns.

    def own(self) -> None:
        """Makes the calling thread the member's."""
        self._thread = threading.get_ident()
        self.wire.own()

    def is_own_thread(self) -> bool:
        return threading.get_ident() == self._thread

    def turn(self) -> bool:
        """Handles what has arrived and what is due. Returns whether there was anything."""
        self._events.extend(self.wire.turn())
        busy = bool(self._events or self._posted)
        while self._events:
            self._handle(self._events.popleft())
        while self._posted:
            self._guarded(self._posted.popleft())
        self._guarded(self._do_what_is_due)
        return busy

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        self.parts.do_what_is_due(now)
        for address in self.peers.to_dial(now):
            self.wire.dial(address)

    def park(self, seconds: float | None) -> None:
        if self._posted or self._events:
            return
        for due in (self.parts.next_due, self.peers.next_dial):
            if due is not None:
                left = max(0.0, due - time.monotonic())
                seconds = left if seconds is None else min(seconds, left)
        self.wire.park(seconds)

    def post(self, call: Callable[[], None]) -> None:
        """Lets the member's thread call something. Any thread may call this."""
        self._posted.append(call)
        if not self.is_own_thread():
            self.wire.wake()

    def on_thread(self, call: Callable[[], None]) -> None:
        """Calls on the member's thread; at once if the caller is on it."""
        if self.is_own_thread():
            call()
        else:
            self.post(call)

    def _handle(self, event: Event) -> None:
        self._guarded(lambda: self._deal_with(event))

    def _deal_with(self, event: Event) -> None:
        if isinstance(event, Received):
            self._take(event.connection, event.message)
        elif isinstance(event, Connected):
            self._connected(event.connection)
        elif isinstance(event, Lost):
            self._lost(event.connection, event.reason)
        else:
            self._not_reached(event)

    def _take(self, connection: Connection, message: m.Message) -> None:
        """Handles a message. If that raises, whoever waits for an answer gets the error."""
        try:
            self._handlers[type(message)](connection, message)
        except Exception as error:
            if isinstance(message, m.Call):
                reply_error(connection, message, error)
            elif isinstance(message, (m.Init, m.Submit)):
                outcome = Outcome.failed(Failed(error), self.address)
                connection.send(m.Answer(message.execution, outcome.packed()))
            raise

    def _guarded(self, call: Callable[[], None]) -> None:
        """A bug that one execution meets must not end the others."""
        try:
            call()
        except Exception:
            logger.exception("member %s could not deal with a message", self.address)

    # Who is there.

    def _connected(self, connection: Connection) -> None:
        self._sent_plans[connection] = SentPlans()
        if not connection.peer.address:
            return  # a client
        self._unreached.pop(connection.peer.address, None)
        before = self.peers.connected(connection)
        if before is connection:
            self.wire.drop(connection, "there is another connection")
            return
        if before is not None:
            self.wire.drop(before, "it has connected anew")
            self._member_lost(before, "it has connected anew")
        self._notes.connected(connection.peer.address, connection.peer.incarnation)
        heard = self._notes.heard
        if heard:
            self.start_call(connection.peer.address, ("heard", "", "", (heard,)))
        if self.peers.is_complete:
            self._on_complete(True)

    def missing(self, address: str) -> str:
        """Why a member is missing, as the end of a sentence that begins with its address."""
        reason = self._unreached.get(address)
        return f"is not connected to member {self.address}" + (f" ({reason})" if reason else "")

    def _not_reached(self, event: NotReached) -> None:
        logger.debug("member %s does not reach %s: %s", self.address, event.address, event.reason)
        self._unreached[event.address] = event.reason
        self.peers.not_reached(event.address, time.monotonic(), event.reason)

    def _lost(self, connection: Connection, reason: str) -> None:
        self._sent_plans.pop(connection, None)
        self._calls.lost(connection, reason)
        self.want_no_more(lambda waiting, message: waiting is connection)
        if not connection.peer.address:
            self.jobs.client_lost(connection)
            self.normal.client_lost(connection)
        elif self.peers.lost(connection, time.monotonic()):
            self._member_lost(connection, reason)

    def _member_lost(self, connection: Connection, reason: str) -> None:
        address = connection.peer.address
        logger.info("member %s lost %s: %s", self.address, address, reason)
        self._on_complete(False)
        self.parts.member_lost(address, reason)
        self.jobs.member_lost(address, reason)

    # Plans.

    def plan_for(self, connection: Connection, message: m.Init | m.Submit) -> KeptPlan | None:
        """The plan that a message names. None if it is not known here: then the sender is asked for
        it, and the message is handled when it has come."""
        plan = self._plans.get(message.plan)
        if plan is None:
            self._wanting.setdefault(message.plan, []).append((connection, message))
            connection.send(m.WantPlan(message.plan))
        return plan

    def want_no_more(
        self, ended: Callable[[Connection, m.Init | m.Submit], bool]
    ) -> list[Connection]:
        """Removes what waits for a plan and does not need it any more. Returns who sent it."""
        senders = []
        for hash, waiting in list(self._wanting.items()):
            senders += [each[0] for each in waiting if ended(*each)]
            waiting[:] = [each for each in waiting if not ended(*each)]
            if not waiting:
                del self._wanting[hash]
        return senders

    def send_plan(self, connection: Connection, hash: bytes, plan: KeptPlan) -> None:
        """Sends a plan, unless it was sent before."""
        if self._sent_plans[connection].add(hash):
            connection.send(m.PlanMessage(hash, plan.data))

    def _on_plan(self, connection: Connection, message: m.PlanMessage) -> None:
        self._plans.add(message.plan, message.dag)
        for waiting, wanting in self._wanting.pop(message.plan, ()):
            self._handle(Received(waiting, wanting))

    def _on_want_plan(self, connection: Connection, message: m.WantPlan) -> None:
        plan = self._plans.get(message.plan) or self.jobs.plan(message.plan)
        if plan is not None:
            connection.send(m.PlanMessage(message.plan, plan.data))

    # Calls.

    def call(self, address: str, request: Request) -> Any:
        """Has a member do something, and waits for its reply. Any thread may call this."""
        if address == self.address:
            return self._serve_here(request)
        return self.wait(self.start_call(address, request))

    def start_call(self, address: str, request: Request) -> Future[Any]:
        """Has another member do something. Any thread may call this, and `wait`."""
        future: Future[Any] = Future()
        payload = dumps_code(request)
        self.on_thread(lambda: self._send_call(address, payload, future))
        return future

    def wait(self, future: Future[Any]) -> Any:
        """The reply to a call. The member's own thread keeps the wire going meanwhile."""
        while self.is_own_thread() and not future.done():
            self._pump()
            if not future.done():
                self.wire.park(None)
        return future.result()

    def _pump(self) -> None:
        """Lets the wire work while a call on its own thread waits for a reply. What could itself
        come to wait is put off; the order of what is dealt with, and of what is put off, stays."""
        self._events.extend(self.wire.turn())
        put_off = []
        while self._events:
            event = self._events.popleft()
            if isinstance(event, Lost):
                self._calls.lost(event.connection, event.reason)
            if isinstance(event, Received) and isinstance(event.message, _NEVER_WAITING):
                self._handle(event)
            else:
                put_off.append(event)
        self._events.extend(put_off)

    def _send_call(self, address: str, payload: bytes, future: Future[Any]) -> None:
        peer = self.peers.get(address)
        if peer is None:
            future.set_exception(MemberLost(f"member {address} {self.missing(address)}"))
        else:
            self._calls.send(peer, payload, future)

    def _on_call(self, connection: Connection, message: m.Call) -> None:
        if connection.peer.address:  # another member: about what is here
            reply(connection, message, self._serve_here)
        else:  # a client: about what is anywhere
            self.service.threads.run(lambda: reply(connection, message, self._serve_client))

    def _serve_here(self, request: Request) -> Any:
        """What another member, or a client through this one, asks of this member."""
        kind, of, what, arguments = request
        match kind:
            case "member":
                return _ABOUT_A_MEMBER[what](self)
            case "job":
                return _ABOUT_A_JOB[what](self, bytes.fromhex(of))
            case "heard":
                return self._notes.hear(arguments[0], self.peers.incarnations)
            case "told":
                return self._notes.told(of, what, self.peers.incarnations)
            case "snapshots":
                return self.parts.take_snapshots(bytes.fromhex(of), *arguments)
            case _:
                return served(self._stored, request)

    def _serve_client(self, asked: tuple[Request, Note]) -> Any:
        request, note = asked
        kind, name, method, _ = request
        members = self.peers.incarnations
        if self._redis is not None and kind not in ("member", "job", "cluster"):
            return note, None, served(self._redis, request)
        if self._redis is not None and method == "contents":
            return [self._redis.contents()]
        if kind == "member":
            return self._ask_all(request)
        if kind == "cluster":
            return there(members)
        if kind == "job":
            (address,) = request[3]
            here = address == self.address
            return self._serve_here(request) if here else self.start_call(address, request)
        self._note_use(kind, name)
        try:
            check(kind, name, note, members, self._notes.first(kind, name))
        except PartLost as lost:
            return note, lost, None
        return note, None, served(self._for_clients, request)

    def _ask_all(self, request: Request) -> list[Any]:
        """The answers of all members that are there."""
        answers = []
        for address in self.addresses:
            try:
                answers.append(self.call(address, request))
            except MemberLost:
                continue
        return answers

    def light_jobs(self) -> list[ListedJob]:
        """The executions that it coordinates."""
        return self.jobs.listed()

    def execution_count(self) -> int:
        """How many executions it takes part in, or holds data for."""
        return len(self.parts.executions)

    def contents(self) -> list[tuple[str, str, list[Any]]]:
        """What is stored here."""
        return self._stored.contents()


_ABOUT_A_MEMBER: Final[dict[str, Callable[[Member], Any]]] = {
    "light_jobs": Member.light_jobs,
    "execution_count": Member.execution_count,
    "contents": Member.contents,
}
"""What every member can be asked about itself."""

_ABOUT_A_JOB: Final[dict[str, Callable[[Member, bytes], Any]]] = {
    "join": lambda member, id: member.jobs.join(id),
    "cancel": lambda member, id: member.jobs.cancel(id),
    "cancel_normal": lambda member, id: member.normal.cancel(id),
    "figures": lambda member, id: member.normal.figures(id),
    "light_figures": lambda member, id: member.jobs.figures(id),
    "part": lambda member, id: member.parts.figures(id),
}
"""What the member of a job, whose address is the argument, can be asked about it."""

_NEVER_WAITING: Final = (m.Reply, m.Call, m.PacketMessage, m.DoneMessage, m.Ack)
"""Messages that can be handled while a call waits for its reply: they never wait themselves."""


class NetworkParking(Parking):
    """Lets the only worker of a pool serve the network between its rounds, and wait for it."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._owned = False

    def turn(self) -> bool:
        if not self._owned:
            self._owned = True
            self._member.own()
        return self._member.turn()

    def park(self, seconds: float | None) -> None:
        """A short wait polls for the work of other threads, which do not wake this one. Without
        such threads only the network can bring work, and it ends the wait."""
        if seconds is not None and not self._member.service.threads.is_busy:
            seconds = max(seconds, LONGEST_PARK)
        self._member.park(seconds)

    def wake(self) -> None:
        if not self._member.is_own_thread():  # which looks for itself before it parks
            self._member.wire.wake()

    def run(self) -> None:
        """Serves the network on its own thread, if the pool has several workers."""
        while not self._member.is_closing:
            if not self.turn():
                self.park(None)
