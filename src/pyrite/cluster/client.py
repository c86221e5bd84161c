"""A client of a cluster: submits jobs to a member, and reads and writes what is stored.

It has the interface of an instance. It talks to one member; when that is gone, jobs that it
coordinated or drove have failed, and what is asked next goes to the next address.
"""

from __future__ import annotations

import builtins
import logging
import os
import secrets
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, Final, NoReturn

from pyrite.closing import Closing
from pyrite.cluster.calls import Calls
from pyrite.cluster.collections.notes import Note, Notes, There
from pyrite.cluster.collections.storage import RemoteList, RemoteMap, Request
from pyrite.cluster.light.figures import PATIENCE, Figures, RemoteFigures, added, figures_of
from pyrite.cluster.light.jobs import ListedJob
from pyrite.cluster.light.outcomes import MemberLost, Outcome
from pyrite.cluster.light.plans import PackedDag, SentPlans
from pyrite.cluster.normal.figures import Ending
from pyrite.cluster.normal.orders import NormalOrder
from pyrite.columns.packing.item_pickling import dumps_code
from pyrite.dag import DAG, MakesDAG
from pyrite.engine.service import BlockingThreads
from pyrite.errors import JobFailed, PyriteError
from pyrite.functions import message_of, shorten
from pyrite.job import Execution, Job, JobConfig, checked_job, light_job, normal_job
from pyrite.telemetry.environment import from_environment
from pyrite.watching.observers import begun
from pyrite.watching.recorders import Recording, recording_from_environment
from pyrite.wire import messages as m
from pyrite.wire.identity import Identity
from pyrite.wire.keys import Keys, keys_from
from pyrite.wire.sockets import Limits
from pyrite.wire.wire import Connected, Connection, Event, Lost, NotReached, Wire

logger = logging.getLogger("pyrite.cluster")

SCHEME: Final = "pyrite://"
CLOSING_SECONDS: Final = 5.0
_CLOSED: Final = "this client is closed; open another with pyrite.client()"


def client(url: str, *, secret: str | None = None) -> Client:
    """A client of the cluster at `pyrite://host:port,host:port`. Use it as a context manager, or
    call its `close()` when done."""
    if not isinstance(url, str) or not url.startswith(SCHEME):
        raise PyriteError(
            f"the address of a cluster is like '{SCHEME}host:5701,other:5701'; got {shorten(url)}"
        )
    addresses = [each.strip() for each in url.removeprefix(SCHEME).split(",") if each.strip()]
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or " " in host or not port.isdigit() or not 0 < int(port) < 65536:
            raise PyriteError(
                f"'{address}' in the address of a cluster is not HOST:PORT; got {shorten(url)}"
            )
    if not addresses:
        raise PyriteError(f"the address of a cluster names no member; got {shorten(url)}")
    return Client(addresses, keys_from(secret) if secret is not None else None)


class Client(Closing):
    """Made by `pyrite.client()`, and by `LocalCluster.client()`."""

    def __init__(
        self, addresses: Sequence[str], keys: Keys | None, limits: Limits | None = None
    ) -> None:
        self._addresses = list(addresses)
        self._pid = os.getpid()
        self._telemetry = from_environment()
        self._turn = 0
        """The address to dial next."""
        self._wire = Wire(keys, Identity(incarnation=secrets.token_hex(8)), limits)
        self._threads = BlockingThreads("pyrite-client")
        self._connection: Connection | None = None
        self._failed_dials: list[str] = []
        self._waiting: list[tuple[Callable[[Connection], None], Callable[[Exception], None]]] = []
        """Calls that wait for a connection: what to do with it, and what to do if there is none."""
        self._running: dict[bytes, Execution] = {}
        self._submitted: set[bytes] = set()
        """The running executions that were sent to a member."""
        self._figures: dict[bytes, RemoteFigures] = {}
        """What is known of running jobs, for those who ask."""
        self._joined: dict[str, Execution] = {}
        """Handles of light jobs that other clients submitted."""
        self._packed: dict[bytes, PackedDag] = {}
        """The DAGs of running executions: a member may ask for one."""
        self._sent_plans = SentPlans()
        self._calls = Calls()
        self._cancels: set[Future[Any]] = set()
        """Calls that cancel something and have no reply yet. Nobody but `close` waits for them."""
        self._posted: deque[Callable[[], None]] = deque()
        self._closed = False
        self._lock = threading.Lock()
        self._recording: Recording | None = None
        self._thread = threading.Thread(target=self._run, name="pyrite-client", daemon=True)
        self._thread.start()
        reached: Future[None] = Future()
        self._post(
            lambda: self._with_connection(lambda _: reached.set_result(None), reached.set_exception)
        )
        try:
            reached.result()
        except BaseException:
            self.close()
            raise
        self._there: Future[There] = self._start(("cluster", "", "incarnations", ()))
        self._notes: Notes | None = None
        self._recording = recording_from_environment()

    # The interface of an instance.

    def new_job(self, dag: DAG | MakesDAG, config: JobConfig | None = None) -> Job:
        """A job that a member runs on Spark. It is pickled here, once, with all that it refers to,
        and with the modules, wheels and files of its config."""
        job = normal_job(dag, config, lambda job: self._submit_normal(job, order))
        order = NormalOrder.of(job).packed()
        return job

    def new_light_job(self, dag: DAG | MakesDAG, config: None = None) -> Job:
        """A job that runs on all members. It is pickled here, once, with all that it refers to."""
        job = light_job(dag, config, lambda job: self._submit_light(job, packed))
        packed = PackedDag.of(job.dag)
        return job

    def execute(self, job: Job) -> Execution:
        """Starts a job and returns at once with the handle of this execution."""
        if checked_job(job, "a client").is_light:
            return self._submit_light(job, PackedDag.of(job.dag))
        return self._submit_normal(job, NormalOrder.of(job).packed())

    def light_jobs(self) -> builtins.list[Execution]:
        """The light jobs that run now on the members, whoever submitted them. Those of other
        clients can be waited for and cancelled, too; their DAGs are not known here."""
        me = self._wire.me.incarnation
        listed = [job for jobs in self._ask_members("light_jobs") for job in jobs]
        found = [
            self._running.get(bytes.fromhex(job.id)) if job.client == me else self._join(job)
            for job in listed
        ]
        return [execution for execution in found if execution is not None]

    def processes(self) -> builtins.list[tuple[str, int]]:
        """A client has started no processes."""
        return []

    def spark(self) -> NoReturn:
        """Raises PyriteError: the Spark sessions of a cluster are in its members."""
        raise PyriteError(
            "a client has no Spark session: the member that runs a normal job has it; use "
            "pyrite.instance() to work with a session"
        )

    def execution_counts(self) -> builtins.list[int]:
        """For each connected member, in how many executions it takes part or for how many it holds
        data."""
        return self._ask_members("execution_count")

    def map(self, name: str) -> RemoteMap:
        """The map of that name, made if it does not exist yet."""
        return RemoteMap(name, self._ask_stored)

    def list(self, name: str) -> RemoteList:
        """The list of that name, made if it does not exist yet."""
        return RemoteList(name, self._ask_stored)

    def collections(self) -> builtins.list[tuple[str, str, builtins.list[Any]]]:
        """The contents of all collections that are not empty: (`map` or `list`, name, pairs or
        items) for each."""
        found: dict[tuple[str, str], builtins.list[Any]] = {}
        for of_member in self._ask_members("contents"):
            for kind, name, contents in of_member:
                found.setdefault((kind, name), []).extend(contents)
        return [(kind, name, contents) for (kind, name), contents in found.items()]

    def close(self) -> None:
        """Cancels what is running, waits for it, and ends the connection."""
        if os.getpid() != self._pid:
            return  # in a fork: the connection is the other process' own
        with self._lock:
            if self._closed:
                return
            self._closed = True
        running = tuple(self._running.copy().values())
        for execution in running:
            execution.cancel()
        stuck = wait(running, timeout=CLOSING_SECONDS).not_done
        wait(self._cancels.copy(), timeout=CLOSING_SECONDS)
        for each in stuck:
            logger.error(
                "%s has not stopped within %d s of the client's closing", each, CLOSING_SECONDS
            )
        if self._recording is not None:
            self._recording.close()
        self._post(self._stop)
        self._thread.join()
        for each in self._joined.values():
            each.end(_not_known(each.job, "this client was closed"))
        self._threads.close(wait=not stuck)
        self._wire.close()
        self._telemetry.close()

    def __repr__(self) -> str:
        return f"<pyrite client of {', '.join(self._addresses)}{', closed' * self._closed}>"

    # On the callers' threads.

    def _submit_light(self, job: Job, packed: PackedDag) -> Execution:
        execution = self._new_execution(job)
        id = bytes.fromhex(execution.id)
        self._figures[id] = self._wire_light(
            execution, lambda: self._post(lambda: self._cancel(id))
        )
        execution.now_running()
        return begun(
            self._submit(execution, lambda connection: self._send_job(connection, id, job, packed))
        )

    def _submit_normal(self, job: Job, order: bytes) -> Execution:
        execution = self._new_execution(job)
        id = bytes.fromhex(execution.id)
        figures = RemoteFigures(self._asking(execution, "figures"))
        execution.wire(
            cancel=lambda: self._post(lambda: self._cancel(id)),
            metrics=lambda: figures.now().metrics,
            progress=lambda: figures.now().progress,
            timings=lambda: figures.now().timings,
            members=lambda: figures.now().members,
            page=lambda: figures.now().page,
        )
        self._figures[id] = figures
        return begun(
            self._submit(execution, lambda connection: connection.send(m.Drive(id, order)))
        )

    def _new_execution(self, job: Job, id: str | None = None) -> Execution:
        return Execution(
            job,
            run_callback=self._threads.run,
            needs_this_thread=lambda: threading.current_thread() is self._thread,
            id=id,
        )

    def _submit(self, execution: Execution, send: Callable[[Connection], None]) -> Execution:
        id = bytes.fromhex(execution.id)
        self._check_open()
        with self._lock:
            self._check_open()
            self._running[id] = execution
        self._post(
            lambda: self._with_connection(
                lambda connection: self._send(connection, execution, send),
                lambda error: self._end(id, _failed(execution.job, str(error))),
            )
        )
        return execution

    def _join(self, listed: ListedJob) -> Execution:
        """The handle of a light job of another client."""
        with self._lock:
            self._check_open()
            execution = self._joined.get(listed.id)
            if execution is not None:
                return execution
            job = Job(DAG(), JobConfig(), True, listed.job_id)
            execution = self._joined[listed.id] = self._new_execution(job, listed.id)
        execution.member = listed.member

        def cancel() -> None:
            self._start(_about(execution, "cancel"), is_cancel=True)

        figures = self._wire_light(execution, cancel)
        execution.now_running()
        self._start(_about(execution, "join")).add_done_callback(
            lambda future: self._joined_ended(execution, figures, future)
        )
        return execution

    def _wire_light(self, execution: Execution, cancel: Callable[[], None]) -> RemoteFigures:
        figures = RemoteFigures(self._asking(execution, "light_figures"), figures_of)
        execution.wire(
            cancel=cancel,
            metrics=lambda: figures.now().metrics,
            progress=_not_of_a_light_job,
            timings=_not_of_a_light_job,
            members=lambda: figures.now().members,
        )
        return figures

    def _last_figures(self, execution: Execution, outcome: Outcome) -> Figures | None:
        """Those of a light job that has ended; None if they are not known. Of a short job they are
        asked for, as long as the members keep them."""
        if outcome.metrics:
            return Figures(added(outcome.metrics))
        try:
            asked = self._start(_about(execution, "light_figures"))
            parts = asked.result(PATIENCE) if execution.member else None
        except (TimeoutError, PyriteError):
            return None
        return Figures(figures_of(parts).metrics) if parts else None

    def _asking(self, execution: Execution, what: str) -> Callable[[], Future[Any] | None]:
        """Asks the member that coordinates or drives a job about it, if there is one."""

        def ask() -> Future[Any] | None:
            return self._start(_about(execution, what)) if execution.member else None

        return ask

    def _ask_stored(self, request: Request) -> Any:
        """Uses a named map or list. Raises PartLost, once, if a part of it is gone."""
        kind, name, _, _ = request
        self._check_open()  # in a fork, nobody would answer
        if self._notes is None:
            self._notes = Notes(None if self._there.exception() else self._there.result())
        note = self._notes.of(kind, name)
        noted, lost, result = self._ask(request, note)
        note.there, note.was_used = noted.there, True
        if lost is not None:
            raise lost
        return result

    def _ask(self, request: Request, note: Note | None = None) -> Any:
        """Has a member do something, and waits for its reply."""
        return self._start(request, note).result()

    def _start(
        self, request: Request, note: Note | None = None, *, is_cancel: bool = False
    ) -> Future[Any]:
        """Has a member do something. Its reply is the result of the future."""
        self._check_open()
        future: Future[Any] = Future()
        payload = dumps_code((request, note))
        with self._lock:  # what is posted here comes before `_stop`
            self._check_open()
            if is_cancel:
                self._cancels.add(future)
                future.add_done_callback(self._cancels.discard)
            self._post(
                lambda: self._with_connection(
                    lambda connection: self._calls.send(connection, payload, future),
                    future.set_exception,
                )
            )
        return future

    def _ask_members(self, about: str) -> builtins.list[Any]:
        """Asks all members about themselves."""
        answers: builtins.list[Any] = self._ask(("member", "", about, ()))
        return answers

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            raise PyriteError(
                "this client belongs to the process that this one was forked from; open another "
                "with pyrite.client()"
            )
        if self._closed:
            raise PyriteError(_CLOSED)

    def _post(self, call: Callable[[], None]) -> None:
        self._posted.append(call)
        self._wire.wake()

    # On the client's own thread.

    def _run(self) -> None:
        self._wire.own()
        self._going = True
        while self._going:
            events = self._wire.turn()
            for event in events:
                self._guarded(lambda event=event: self._handle(event))  # type: ignore[misc]
            while self._posted and self._going:
                self._guarded(self._posted.popleft())
            if self._going and not events and not self._posted:
                self._wire.park(None)

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:
            logger.exception("%r could not deal with a message", self)

    def _stop(self) -> None:
        """Ends the thread. Callers that still wait for a member get an error."""
        self._going = False
        closed = PyriteError(_CLOSED)
        waiting, self._waiting = self._waiting, []
        for _, fail in waiting:
            fail(closed)
        self._calls.end(closed)

    def _handle(self, event: Event) -> None:
        if isinstance(event, Connected):
            self._connected(event.connection)
        elif isinstance(event, NotReached):
            self._not_reached(event.address, event.reason)
        elif isinstance(event, Lost):
            self._lost(event.connection, event.reason)
        elif isinstance(event.message, m.Answer):
            self._answered(event.message)
        elif isinstance(event.message, m.Running):
            execution = self._running.get(event.message.execution)
            if execution is not None:
                execution.now_running()
        elif isinstance(event.message, m.Reply):
            self._calls.replied(event.message)
        elif isinstance(event.message, m.WantPlan):
            for packed in self._packed.values():
                if packed.hash == event.message.plan:
                    event.connection.send(m.PlanMessage(packed.hash, packed.data))
                    break

    def _with_connection(
        self, use: Callable[[Connection], None], fail: Callable[[Exception], None]
    ) -> None:
        if self._connection is not None:
            use(self._connection)
            return
        self._waiting.append((use, fail))
        if len(self._waiting) == 1:
            self._failed_dials = []
            self._dial()

    def _dial(self) -> None:
        self._wire.dial(self._addresses[self._turn])

    def _connected(self, connection: Connection) -> None:
        self._connection = connection
        self._sent_plans = SentPlans()
        waiting, self._waiting = self._waiting, []
        for use, _ in waiting:
            use(connection)

    def _not_reached(self, address: str, reason: str) -> None:
        self._turn = (self._turn + 1) % len(self._addresses)
        self._failed_dials.append(f"{address}: {reason}")
        if len(self._failed_dials) < len(self._addresses):
            self._dial()
            return
        error = MemberLost(
            f"no member of the cluster can be reached ({'; '.join(self._failed_dials)})"
        )
        waiting, self._waiting = self._waiting, []
        for _, fail in waiting:
            fail(error)

    def _lost(self, connection: Connection, reason: str) -> None:
        self._connection = None
        self._turn = (self._turn + 1) % len(self._addresses)
        for id in list(self._submitted):  # the others go to the next address
            execution = self._running[id]
            role = "its coordinator" if execution.job.is_light else "which ran it on Spark"
            text = f"{connection.name}, {role}, was lost: {reason}"
            self._end(id, _failed(execution.job, text))
        self._calls.lost(connection, reason)

    def _send(
        self, connection: Connection, execution: Execution, send: Callable[[Connection], None]
    ) -> None:
        id = bytes.fromhex(execution.id)
        if id in self._running:  # else it was cancelled
            self._submitted.add(id)
            execution.member = connection.peer.address
            send(connection)

    def _send_job(self, connection: Connection, id: bytes, job: Job, packed: PackedDag) -> None:
        self._packed[id] = packed
        if self._sent_plans.add(packed.hash):
            connection.send(m.PlanMessage(packed.hash, packed.data))
        connection.send(m.Submit(id, bytes.fromhex(job.id), packed.hash))

    def _cancel(self, id: bytes) -> None:
        execution = self._running.get(id)
        if execution is None:
            return
        if id not in self._submitted or self._connection is None:
            # It waits for a connection, and never begins.
            self._end(id, Outcome(cancelled=True).error(execution.job.name))
        elif execution.job.is_light:
            self._connection.send(m.Cancel(id))
        else:  # a normal job's cancel must not overtake its order, which may be large
            payload = dumps_code((_about(execution, "cancel_normal"), None))
            self._calls.send(self._connection, payload, Future())

    def _answered(self, message: m.Answer) -> None:
        execution = self._running.get(message.execution)
        if execution is None:
            return
        error: Exception | None
        try:
            if execution.job.is_light:
                outcome = Outcome.unpacked(message.outcome)
                last = partial(self._last_figures, execution, outcome)
                self._figures[message.execution].end(last)
            else:
                ending = Ending.unpacked(message.outcome)
                outcome = ending.outcome
                self._figures[message.execution].end(lambda: ending.figures)
            error = outcome.error(execution.job.name)
        except Exception as unreadable:
            text = f"its outcome cannot be read here: {message_of(unreadable)}"
            error = _failed(execution.job, text)
        self._end(message.execution, error)

    def _joined_ended(
        self, execution: Execution, figures: RemoteFigures, future: Future[bytes | None]
    ) -> None:
        self._joined.pop(execution.id, None)
        error, job = future.exception(), execution.job
        packed = future.result() if error is None else None
        if packed is not None:
            outcome = Outcome.unpacked(packed)
            figures.end(partial(self._last_figures, execution, outcome))
            execution.end(outcome.error(job.name))
        else:
            figures.end(lambda: None)
            execution.end(_not_known(job, str(error or "it ended before it could be waited for")))

    def _end(self, id: bytes, error: BaseException | None) -> None:
        self._submitted.discard(id)
        self._packed.pop(id, None)
        figures = self._figures.pop(id, None)
        if figures is not None and not figures.has_ended:
            figures.end(lambda: None)
        execution = self._running.pop(id, None)
        if execution is not None:
            execution.end(error)


def _failed(job: Job, text: str) -> JobFailed:
    return JobFailed(f"{job.name} failed: {text}")


def _not_known(job: Job, why: str) -> PyriteError:
    return PyriteError(f"it is not known how {job.name}, of another client, ended: {why}")


def _about(execution: Execution, what: str) -> Request:
    """A question about a job to the member that coordinates or drives it."""
    return "job", execution.id, what, (execution.member,)


def _not_of_a_light_job() -> NoReturn:
    raise PyriteError(
        "a light job on members can be waited for or cancelled, and has metrics and members, but "
        "no progress or timings: it has no stages"
    )
