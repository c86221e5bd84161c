"""One member's part of one execution, from its init, or from data that arrives before, to its
outcome."""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pyrite.cluster.collections.storage import SharedCollections
from pyrite.cluster.edges.links import MemberLinks
from pyrite.cluster.edges.receiving import Arrivals
from pyrite.cluster.edges.sending import To
from pyrite.cluster.light.figures import PartFigures
from pyrite.cluster.light.outcomes import Order, Outcome
from pyrite.cluster.light.plans import KeptPlan
from pyrite.cluster.light.snapshots import Snapshots
from pyrite.context import CollectionKind
from pyrite.engine.execution import complete_into, flush_into
from pyrite.engine.failure import Failed, Halt
from pyrite.engine.limits import handles_errors
from pyrite.engine.member import LifeCycleFailed, MemberRun, RunContext
from pyrite.engine.metrics import gather
from pyrite.engine.processes import this_process
from pyrite.engine.service import ExecutionService
from pyrite.engine.tasklets import Tasklet
from pyrite.suppliers import ProcessorSupplier

logger = logging.getLogger("pyrite.cluster")

SHORT_SECONDS: Final = 0.02


class Participant:
    """Before its init, it only holds what arrives."""

    def __init__(self, id: bytes) -> None:
        self.id = id
        self.arrivals = Arrivals()
        self.snapshots = Snapshots()
        self.halt = Halt()
        self.has_begun = False
        self.links: MemberLinks | None = None
        self._run: MemberRun | None = None
        self._is_prepared = False
        self._began = 0.0
        self._left = 0
        self._lock = threading.Lock()
        self._slow: set[str] = set()

    def begin(
        self,
        order: Order,
        plan: KeptPlan,
        peers: Mapping[int, To],
        *,
        service: ExecutionService,
        collections: SharedCollections,
        flush: Callable[[], None],
        on_end: Callable[[Outcome], None],
    ) -> None:
        """Starts it. `flush` is called at the end and waits for pending writes. `on_end` is called
        once, on any thread, when everything has stopped and is closed."""
        self._order = order
        self._plan = plan
        self._peers = peers
        self._service = service
        self._collections = collections
        self._flush = flush
        self._on_end = on_end
        self._began = time.monotonic()
        self.has_begun = True
        if plan.starts_at_once(order.job_id, len(order.members), order.parallelism):
            self._start()
        else:
            service.threads.run(self._start)

    @property
    def name(self) -> str:
        return f"light job {self.id.hex()}"

    @property
    def addresses(self) -> list[str]:
        """The members that take part. Known once it has begun."""
        return [address for address, _ in self._order.members]

    def holds_something_of(self, address: str) -> bool:
        """Whether a member sent data before the init, or asked for snapshots."""
        return self.arrivals.came_from(address) or self.snapshots.coordinator == address

    def uses(self, address: str) -> bool:
        """Whether a member takes part. May be called after `begin` only."""
        return any(address == other for other, _ in self._order.members)

    def acked(self, address: str, edge: int, limit: int) -> None:
        links = self.links
        if links is not None:
            links.acked([each for each, _ in self._order.members].index(address), edge, limit)

    def _start(self) -> None:
        halt = self.halt
        if halt.is_set:
            self._end()
            return
        try:
            tasklets = self._prepare()
        except LifeCycleFailed as error:
            halt.fail(error.failed)
            self._end()
            return
        except BaseException as error:
            halt.fail(Failed(error))
            self._end()
            return
        assert self._run is not None
        self._left = len(tasklets) + len(self._run.tasklets)
        self._run.start(self._service, self._tasklet_done)
        if tasklets:  # last, so that they send in the same round what the others emit
            self._service.submit(tasklets, self._tasklet_done)

    def _prepare(self) -> list[Tasklet]:
        order = self._order
        plan = self._plan.plan(order.job_id, len(order.members), order.parallelism)
        suppliers: dict[str, ProcessorSupplier] = (
            pickle.loads(order.suppliers) if order.suppliers else {}
        )
        run = RunContext(
            job_name=self.name,
            job_id=order.job_id,
            execution_id=self.id.hex(),
            member_count=len(order.members),
            collections=self._collections,
            halt=self.halt,
            wake=self._service.wake,
            member_share=self._share,
        )
        if order.found:
            run.tell_found(pickle.loads(order.found))
        self.links = MemberLinks(self.id, plan.topology, self._peers, self.arrivals, self.halt)
        self._run = MemberRun(
            run,
            plan.topology,
            plan.stretches,
            index=order.index,
            suppliers=suppliers,
            single_partitions=order.single_partitions,
            links=self.links,
        )
        self._run.prepare(self._warn_slow)
        self._is_prepared = True
        self.snapshots.drop()
        return [*self.links.tasklets]

    def _share(self, kind: CollectionKind, name: str) -> Sequence[Any]:
        """What the sources here read. If this is the only member, it was not taken before."""
        index, count = self._order.index, len(self._order.members)
        self.snapshots.take(
            [(kind, name)], lambda kind, name: self._collections.share(kind, name, index, count)
        )
        return self.snapshots.of(kind, name)

    def _tasklet_done(self, tasklet: Tasklet) -> None:
        with self._lock:
            self._left -= 1
            if self._left:
                return
        order = self._order
        if self._plan.starts_at_once(order.job_id, len(order.members), order.parallelism):
            self._end()
        else:
            try:
                self._service.threads.run(self._end)
            except Exception as error:  # no thread can be started
                self.halt.fail(Failed(error))
                self._end()

    def _end(self) -> None:
        address, _ = self._order.members[self._order.index]
        run = self._run
        flush_into(self.halt, self._flush)
        if run is not None:
            complete_into(self.halt, run)
        outcome = Outcome.of(self.halt, address)
        if outcome is None:
            assert run is not None
            outcome = Outcome(reports=run.reports())
        if self._tells_metrics:
            outcome = replace(outcome, metrics=(self._metrics(),))
        if run is not None:
            run.close(outcome.error(self.name))
        self._on_end(outcome)

    @property
    def _tells_metrics(self) -> bool:
        """Whether its outcome has metrics. To gather them takes a part of a millisecond, so who
        wants to know those of a short part has to ask for them."""
        if not self._is_prepared:  # its plan may be what cannot be loaded
            return False
        order = self._order
        topology = self._plan.plan(order.job_id, len(order.members), order.parallelism).topology
        return time.monotonic() - self._began >= SHORT_SECONDS or handles_errors(topology)

    def last_figures(self) -> PartFigures | None:
        """What it has done, after its end."""
        return PartFigures(self._metrics()) if self._is_prepared else None

    def figures(self) -> PartFigures | None:
        """What it has done so far; None if it has not begun. Any thread may call this."""
        if not self._is_prepared:
            return None
        address, _ = self._order.members[self._order.index]
        return PartFigures(self._metrics(), this_process(address))

    def _metrics(self) -> bytes:
        order, run = self._order, self._run
        if run is None or not self._is_prepared:
            return b""
        topology = self._plan.plan(order.job_id, len(order.members), order.parallelism).topology
        return pickle.dumps(gather(topology, [(run.stretch_of, run.processor_tasklets)]), 5)

    def _warn_slow(self, label: str, seconds: float) -> None:
        if label not in self._slow:
            self._slow.add(label)
            logger.warning(
                "%s: a call of cooperative vertex '%s' took %.0f ms and held up everything else on "
                "its member; do less per call, or set cooperative = False on its processor",
                self.name,
                label,
                seconds * 1000,
            )
