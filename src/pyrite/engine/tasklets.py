"""Tasklets: the units of work that a worker thread calls in turn. Each call does a little work and
returns whether it made progress and whether the tasklet is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from time import perf_counter
from types import FrameType
from typing import Any, Final

from pyrite.bad_records import Handler
from pyrite.boxes import Inbox, Outbox
from pyrite.dag import Pattern
from pyrite.engine.ends import Inlet
from pyrite.engine.failure import Failed, Halt
from pyrite.engine.heavy_keys import HeavyKeys, is_repeatable
from pyrite.engine.plan import EdgePlan
from pyrite.engine.queues import Done, SpscQueue
from pyrite.engine.routing import Route, RoutingFailed
from pyrite.pace import Pace
from pyrite.processor import FailedAt, Processor, wrong_answer
from pyrite.processors.loops.fused import FusedProcessor
from pyrite.weights import count_of, is_batch
from pyrite.whereabouts import Whereabouts, found_in

IDLE: Final = 0
PROGRESS: Final = 1
DONE_NOW: Final = 2
"""What `Tasklet.call` returns: it had nothing to do; it made progress; it is done and must not be
called again."""

LONGEST_HELD = 0.05
"""Rows that a route holds back, so that it can put more to them, wait no more seconds than this."""

SLOW_CALL = 0.1
"""A call of a cooperative processor that takes more seconds than this is logged as a warning."""


class Tasklet:
    """A unit of work that a worker thread calls until it returns DONE_NOW."""

    __slots__ = ("halt", "taker")

    def __init__(self, halt: Halt) -> None:
        self.halt = halt
        self.taker: Any = None
        """The worker that has asked to take this tasklet over."""

    def call(self) -> int:
        raise NotImplementedError

    @property
    def is_woken(self) -> bool:
        """Whether a tasklet that was idle gets on only if another one does, or if somebody calls
        `wake`: then it need not be called before."""
        return False


class InboundEdge:
    """The queues of one inbound edge of one processor. They are read in turn until each has
    returned its done marker."""

    __slots__ = (
        "_turn",
        "capacity",
        "heavy_keys",
        "ordinal",
        "plan",
        "priority",
        "queues",
        "received",
    )

    def __init__(self, plan: EdgePlan, queues: Sequence[SpscQueue]) -> None:
        self.plan = plan
        self.ordinal = plan.destination_ordinal
        self.priority = plan.settings.priority
        self.queues = list(queues)
        self.capacity = sum(queue.capacity for queue in queues)
        """How many items all queues hold when they are full; 0 if that is not limited."""
        self.received = 0
        settings = plan.settings
        self.heavy_keys = (
            HeavyKeys(settings.key, settings.columns)
            if settings.pattern is Pattern.PARTITIONED and is_repeatable(settings.key)
            else None
        )
        self._turn = 0

    def note(self, items: Sequence[Any]) -> None:
        """Counts items that the processor gets from this edge."""
        count = count_of(items)
        self.received += count
        if self.heavy_keys is not None:
            self.heavy_keys.see(items, count)

    def fill(self, inbox: Inbox, limit: int) -> bool:
        """Moves up to `limit` items into the inbox, or some batches of rows. Returns whether a
        queue returned items or its done marker."""
        queues = self.queues
        came = False
        position = self._turn
        for _ in range(len(queues)):
            if position >= len(queues):
                position = 0
            chunk = queues[position].poll(limit)
            while isinstance(chunk, list):
                came = True
                inbox.extend(chunk)
                limit = 0 if is_batch(chunk[0]) else limit - len(chunk)
                chunk = queues[position].poll(limit) if limit > 0 else None
            if chunk is None:
                position += 1
            else:
                came = True
                del queues[position]
            if limit <= 0:
                break
        self._turn = position
        return came

    @property
    def is_done(self) -> bool:
        return not self.queues

    def __len__(self) -> int:
        return sum(map(len, self.queues))

    @property
    def rows(self) -> int:
        """Its length in metrics: a batch counts as its rows."""
        return sum(queue.rows for queue in self.queues)


class ProcessorTasklet(Tasklet):
    """Runs one processor: fills its inbox, calls it, and drains its outbox."""

    __slots__ = (
        "_at",
        "_began",
        "_buckets",
        "_busy_said",
        "_call",
        "_group",
        "_has_try_process",
        "_on_finish",
        "_processing",
        "_putting_together",
        "_stepped",
        "_undrained",
        "_waiting",
        "_warn_slow",
        "busy",
        "handlers",
        "has_finished",
        "inbound",
        "inbox",
        "index",
        "is_steady",
        "label",
        "outbox",
        "pace",
        "processor",
        "routes",
        "vertex",
    )

    def __init__(
        self,
        processor: Processor,
        *,
        vertex: str,
        label: str,
        index: int,
        inbound: Sequence[InboundEdge],
        outbox: Outbox,
        routes: Sequence[Route],
        halt: Halt,
        warn_slow: Callable[[str, float], None],
        on_finish: Sequence[Callable[[], None]] = (),
    ) -> None:
        super().__init__(halt)
        self.processor = processor
        self.vertex = vertex
        self.label = label
        self.index = index
        self.inbound = list(inbound)
        self.outbox = outbox
        self.routes = list(routes)
        self._putting_together = [route for route in self.routes if route.puts_together]
        self._buckets = [*outbox.buckets, *outbox.letters]
        self.handlers: Sequence[Handler | None] = ()
        """The handlers of errors, by vertex of its stretch; empty if there are none."""
        self.inbox = Inbox()
        self.pace: Pace = Pace()
        self.is_steady = False
        """Whether the clock must not decide what goes together."""
        self.busy = 0.0
        self._began: tuple[float, float] | None = None
        self._busy_said = 0.0
        """While the processor is called: how long it was busy before, and when the call began."""
        self.has_finished = False
        self._undrained = False
        self._processing = False
        self._stepped = False
        self._warn_slow = warn_slow
        self._on_finish = on_finish
        self._has_try_process = type(processor).try_process is not Processor.try_process
        self._waiting = sorted(self.inbound, key=lambda edge: edge.priority)
        self._group: list[InboundEdge] = []
        self._at: InboundEdge | None = None
        """The edge that the items in the inbox came from."""
        self._call: Callable[[], int] = self._complete if not self._waiting else self._process
        self._next_group()

    def call(self) -> int:
        if self.halt.is_set:
            return DONE_NOW
        try:
            if self._undrained:
                moved = self._drain_outbox()
                if self._undrained:
                    return PROGRESS if moved else IDLE
            answer = self._call()
            self._drain_outbox()
            # The next step follows at once: between two rounds, members deal with the network.
            while self._stepped and not self._undrained and answer != DONE_NOW:
                self._stepped = False
                answer = self._call()
                self._drain_outbox()
            if self._putting_together and answer != DONE_NOW and not self.is_steady:
                self.let_go(older_than=LONGEST_HELD)
            return answer
        except BaseException as error:
            self.busy, self._began = self.busy_until_now, None
            self.halt.fail(self._located(error))
            return DONE_NOW

    def _process(self) -> int:
        inbox = self.inbox
        if inbox:
            return self._deliver()
        group = self._group
        came = False
        for _ in range(len(group)):
            edge = group.pop(0)
            group.append(edge)
            came = edge.is_done or edge.fill(inbox, self.pace.limit)
            if came:
                self._at = edge
                break
        if inbox:
            assert self._at is not None
            self._at.note(inbox.pending())
            self._deliver()
            return PROGRESS
        if came and self._at is not None and self._at.is_done:
            self._call = self._complete_edge
            return self._complete_edge()
        if came:
            return PROGRESS
        return self._try_process() if self._has_try_process else IDLE

    def _deliver(self) -> int:
        """Calls the processor with its inbox. Returns IDLE if it may be waiting
        (`polls`) and neither took nor emitted an item."""
        count = len(self.inbox)
        self._timed_process()
        assert self._at is not None
        if not self.inbox and self._at.is_done:
            self._step_to(self._complete_edge)
        return self._progress_if_taken(count)

    def _progress_if_taken(self, count: int) -> int:
        """`count` is the number of items that were in the inbox before a call."""
        if len(self.inbox) < count or not self.processor.polls:
            return PROGRESS
        return self._progress_if_emitted()

    def _timed_process(self) -> None:
        assert self._at is not None
        inbox = self.inbox
        count = len(inbox)
        started = perf_counter()
        self._began = (self.busy, started)
        self._processing = True
        self.processor.process(self._at.ordinal, inbox)
        self._processing = False
        seconds = perf_counter() - started
        self._took(seconds)
        self.pace.took(count - len(inbox), seconds)

    def _complete_edge(self) -> int:
        edge = self._at
        assert edge is not None
        if not self._timed(self.processor.complete_edge, edge.ordinal):
            return self._progress_if_emitted()
        self._at = None
        self._group.remove(edge)
        self._step_to(self._process)
        if not self._group:
            self._next_group()
        return PROGRESS

    def _next_group(self) -> None:
        if not self._waiting:
            self._call = self._complete
            return
        priority = self._waiting[0].priority
        self._group = [edge for edge in self._waiting if edge.priority == priority]
        self._waiting = self._waiting[len(self._group) :]

    def _try_process(self) -> int:
        if self._timed(self.processor.try_process):
            self._call = self._process
        else:
            self._call = self._try_process
        return self._progress_if_emitted()

    def _complete(self) -> int:
        if self._timed(self.processor.complete):
            self._step_to(self._finish)
            return PROGRESS
        return self._progress_if_emitted() if self.processor.polls else PROGRESS

    def _step_to(self, call: Callable[[], int]) -> None:
        """One step of the processor's life has ended, and this is the next."""
        self._call = call
        self._stepped = True

    def _finish(self) -> int:
        if self.let_go() and self._undrained:
            return PROGRESS  # called again when the outlets have taken everything
        for route in self.routes:
            route.finish()
        for tell in self._on_finish:
            tell()
        self.has_finished = True
        return DONE_NOW

    def let_go(self, *, older_than: float = 0.0) -> bool:
        """Lets items go that routes have held back for so many seconds. Returns whether there were
        any."""
        held = False
        for route in self._putting_together:
            since = route.held_since
            if since is not None and perf_counter() - since >= older_than:
                route.let_go()
                held = True
        if held:
            self._drain_outbox()
        return held

    @property
    def busy_until_now(self) -> float:
        """How long it was busy, with a call that goes on. It never falls: what was said in the last
        moment of a call may be longer than what is then counted."""
        began = self._began
        busy = self.busy if began is None else began[0] + perf_counter() - began[1]
        if busy > self._busy_said:
            self._busy_said = busy
        return self._busy_said

    @property
    def received(self) -> int:
        return sum(edge.received for edge in self.inbound)

    @property
    def is_woken(self) -> bool:
        processor = self.processor
        if any(route.held_since is not None for route in self._putting_together):
            return False
        if processor.is_waiting or not processor.polls:
            return True
        return self._call == self._process and not self._has_try_process and not self.inbox

    # For parts of durable jobs, which are saved and resumed between two calls.

    @property
    def is_quiet(self) -> bool:
        """Whether all that the processor has got is in its state, and all that it has emitted is in
        the outlets."""
        if self.has_finished:
            return True
        if self.inbox or len(self.outbox) or any(route.pending for route in self.routes):
            return False
        if any(route.held_since is not None for route in self._putting_together):
            return False
        if not self.processor.can_save:
            return False
        # Edges of a later priority wait in their queues until this one has ended.
        return self._call != self._try_process and not any(map(len, self.inbound))

    def drain(self) -> bool:
        """Lets go what was emitted, without calling the processor. Returns whether items moved."""
        return self.let_go() or self._drain_outbox()

    def ended_ordinals(self) -> frozenset[int]:
        """The inbound edges whose `complete_edge` is over."""
        open_edges = {edge.ordinal for edge in (*self._group, *self._waiting)}
        return frozenset(edge.ordinal for edge in self.inbound) - open_edges

    def resume(self, ended: Collection[int], *, has_finished: bool) -> None:
        """Begins where another tasklet of the same processor was. Edges that have ended are not
        completed again, nor is a processor that has finished."""
        self._waiting = sorted(
            (edge for edge in self.inbound if edge.ordinal not in ended),
            key=lambda edge: edge.priority,
        )
        self._group = []
        self._call = self._process
        self._next_group()
        if has_finished:
            self._finish()

    def _timed(self, method: Callable[..., bool | None], *arguments: int) -> bool:
        started = perf_counter()
        self._began = (self.busy, started)
        answer = method(*arguments)
        self._took(perf_counter() - started)
        if answer is None or answer is True:
            return True
        if answer is not False:
            raise wrong_answer(method, answer)
        return False

    def _took(self, seconds: float) -> None:
        self.busy += seconds
        self._began = None
        if seconds > SLOW_CALL and self.processor.cooperative:
            self._warn_slow(self.label, seconds)

    def _progress_if_emitted(self) -> int:
        return PROGRESS if len(self.outbox) else IDLE

    def _drain_outbox(self) -> bool:
        moved = undrained = False
        for route, bucket in zip(self.routes, self._buckets):
            if bucket or route.pending:
                moved = route.drain(bucket) or moved
                undrained = undrained or route.pending
        self._undrained = undrained
        return moved

    def _located(self, error: BaseException) -> Failed:
        if isinstance(error, RoutingFailed):
            return Failed(
                error.error,
                vertex=self.vertex,
                processor=self.index,
                edge=error.edge,
                item=error.item,
            )
        place = self._place()
        edge = place.edge or (self._at.plan.name if self._at is not None else None)
        return Failed(
            error,
            vertex=place.vertex or self.vertex,
            processor=self.index,
            edge=edge,
            item=place.item,
            supplier=place.supplier,
            is_result=place.is_result,
        )

    def _place(self) -> FailedAt:
        try:
            place = self.processor.failed_at(self.inbox)
        except BaseException:
            return FailedAt(None)
        # Only errors in process() are about an item of the inbox. A chain names its own item.
        return place if self._processing or place.vertex is not None else place._replace(item=None)


class ReceiverTasklet(Tasklet):
    """Receives the packets of one distributed edge from the other members, and routes their items
    to the processors of this member."""

    __slots__ = (
        "_edge",
        "_inlet",
        "_partition_routes",
        "_route",
        "_route_of_partition",
        "_waiting",
    )

    def __init__(
        self,
        edge: EdgePlan,
        inlet: Inlet,
        *,
        route: Route,
        partition_routes: Sequence[Route],
        route_of_partition: Sequence[int],
        halt: Halt,
    ) -> None:
        super().__init__(halt)
        self._edge = edge
        self._inlet = inlet
        self._route = route
        self._partition_routes = partition_routes
        """The routes of items that come with a partition, if any do."""
        self._route_of_partition = route_of_partition
        self._waiting: Route | None = None

    @property
    def is_quiet(self) -> bool:
        return self._waiting is None or not self._waiting.pending

    @property
    def is_woken(self) -> bool:
        return True  # what arrives wakes the thread

    def call(self) -> int:
        if self.halt.is_set:
            return DONE_NOW
        try:
            return self._receive()
        except BaseException as error:
            self.halt.fail(Failed(error, vertex=self._edge.destination, edge=self._edge.name))
            return DONE_NOW

    def _receive(self) -> int:
        if self._waiting is not None:
            moved = self._waiting.drain([])
            if self._waiting.pending:
                return PROGRESS if moved else IDLE
            self._waiting = None
        packet = self._inlet.poll()
        if packet is None:
            return IDLE
        if isinstance(packet, Done):
            self._route.finish()
            return DONE_NOW
        route = self._route
        if self._partition_routes and packet.partition is not None:
            route = self._partition_routes[self._route_of_partition[packet.partition]]
        route.drain(packet.items)
        self._waiting = route
        return PROGRESS


@found_in(ProcessorTasklet.call)
def _whereabouts(frame: FrameType, inner: Sequence[FrameType]) -> Whereabouts | None:
    """For the log: which vertex of a chain is at work, the stack says."""
    tasklet: ProcessorTasklet = frame.f_locals["self"]
    if tasklet.halt.run is None:
        return None
    processor = tasklet.processor
    vertex = None
    if isinstance(processor, FusedProcessor):
        vertex = next(filter(None, map(processor.vertex_at, inner)), None)
    vertex = vertex or processor.failed_at(tasklet.inbox).vertex or tasklet.vertex
    return tasklet.halt.run._replace(vertex=vertex)
