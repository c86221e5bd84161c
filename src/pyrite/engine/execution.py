"""One execution of a DAG on the cooperative engine: suppliers asked, tasklets run, everything closed, the outcome told.

The coordinator's part (`JobRun`) asks the meta-suppliers and commits; a member's part (`MemberRun`) makes the processors and runs them.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.context import Collections, MetaSupplierContext, ProcessorContext, SupplierContext
from pyrite.dag import DAG
from pyrite.engine.assembly import Assembly
from pyrite.engine.ends import Links, NoLinks
from pyrite.engine.failure import Failed, Halt
from pyrite.engine.fusion import Stretch, fuse, step_of
from pyrite.engine.metrics import VertexMetrics, gather
from pyrite.engine.plan import Topology, choose_single_partitions, plan_topology
from pyrite.engine.service import ExecutionService
from pyrite.engine.tasklets import ProcessorTasklet, ReceiverTasklet, Tasklet
from pyrite.processor import Processor
from pyrite.processors.chain import ChainProcessor
from pyrite.processors.steps import Sink
from pyrite.suppliers import (
    ProcessorMetaSupplier,
    ProcessorSupplier,
    check_processors,
    meta_supplier_of,
    suppliers_by_member,
)

logger = logging.getLogger("pyrite.engine")

OnEnd = Callable[[BaseException | None], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What executions of one DAG have in common, so that the next one starts at once."""

    topology: Topology
    stretches: tuple[Stretch, ...]
    suppliers: Mapping[str, Any]
    sinks: tuple[tuple[str, Sink], ...]

    @property
    def runs_users_life_cycles(self) -> bool:
        """Whether starting and ending calls code that may block: suppliers and processors of the user's, and files."""
        return bool(self.sinks) or any(stretch.chain is None for stretch in self.stretches)

    @staticmethod
    def of(dag: DAG, *, member_count: int, default_parallelism: int) -> Plan:
        """Validates the DAG and plans it; or finds the plan that was made before."""

        def make(dag: DAG) -> Plan:
            topology = plan_topology(dag, member_count=member_count, default_parallelism=default_parallelism)
            suppliers = {vertex.name: vertex.supplier for vertex in dag.vertices}
            steps = {name: step_of(supplier) for name, supplier in suppliers.items()}
            sinks = tuple((name, step) for name, step in steps.items() if isinstance(step, Sink) and step.commits)
            return Plan(topology, fuse(topology, suppliers), suppliers, sinks)

        return dag.derived(("engine", member_count, default_parallelism), make)


class JobRun:
    """Runs a plan once. `begin` returns at once; `on_end` is called when everything has stopped and is closed."""

    def __init__(
        self,
        plan: Plan,
        *,
        service: ExecutionService,
        collections: Collections,
        job_name: str,
        job_id: str,
        execution_id: str,
        on_end: OnEnd,
        on_running: Callable[[], None],
        links: Sequence[Links] | None = None,
    ) -> None:
        self.halt = Halt()
        self.collections = collections
        self.job_id = job_id
        self.execution_id = execution_id
        self._plan = plan
        self._service = service
        self._job_name = job_name
        self._on_end = on_end
        self._on_running = on_running
        self._links = links or [NoLinks()]
        self._members: list[MemberRun] = []
        self._meta_suppliers: list[tuple[str, ProcessorMetaSupplier]] = []
        self._left = 0
        self._lock = threading.Lock()
        self._slow: set[str] = set()

    def begin(self) -> None:
        if self._plan.runs_users_life_cycles:
            self._service.threads.run(self._start)
        else:
            self._start()

    def cancel(self) -> None:
        self.halt.cancel()

    def metrics(self) -> dict[str, VertexMetrics]:
        return gather(self._plan.topology, [(m.stretch_of, m.processor_tasklets) for m in self._members])

    def context(self, vertex: str, local_parallelism: int) -> dict[str, Any]:
        """What the contexts of all kinds hold."""
        return {
            "vertex_name": vertex,
            "local_parallelism": local_parallelism,
            "member_count": self._plan.topology.member_count,
            "job_id": self.job_id,
            "execution_id": self.execution_id,
            "collections": self.collections,
            "is_cancelled": self._is_halted,
        }

    def _is_halted(self) -> bool:
        return self.halt.is_set

    def _start(self) -> None:
        if self.halt.is_set:  # cancelled before it started: it never does
            self._end()
            return
        try:
            self._prepare()
        except LifeCycleFailed as error:
            self.halt.fail(error.failed)
            self._end()
            return
        except BaseException as error:
            self.halt.fail(Failed(error))
            self._end()
            return
        self._on_running()
        self._left = sum(len(member.tasklets) for member in self._members)
        for member in self._members:
            member.start(self._tasklet_done)

    def _prepare(self) -> None:
        plan = self._plan
        topology = plan.topology
        addresses = [f"member-{index}" for index in range(topology.member_count)]
        by_member: list[dict[str, ProcessorSupplier]] = [{} for _ in addresses]
        for stretch in plan.stretches:
            if stretch.chain is None:
                name = stretch.vertices[0].name
                meta_supplier = meta_supplier_of(plan.suppliers[name], name)
                self._meta_suppliers.append((name, meta_supplier))
        parallelism = {vertex.name: vertex.local_parallelism for vertex in topology.vertices}
        for name, meta_supplier in self._meta_suppliers:
            with at(name):
                meta_supplier.init(MetaSupplierContext(**self.context(name, parallelism[name])))
        for name, meta_supplier in self._meta_suppliers:
            with at(name):
                for suppliers, supplier in zip(by_member, suppliers_by_member(meta_supplier, addresses, name)):
                    suppliers[name] = supplier
        single_partitions = choose_single_partitions(topology, random.Random())
        self._members = [
            MemberRun(self, plan, index, suppliers, single_partitions, links, self._service)
            for index, (suppliers, links) in enumerate(zip(by_member, self._links))
        ]
        for member in self._members:
            member.prepare(self._warn_slow)

    def _tasklet_done(self, tasklet: Tasklet) -> None:
        with self._lock:
            self._left -= 1
            if self._left:
                return
        if self._plan.runs_users_life_cycles:
            self._service.threads.run(self._end)
        else:
            self._end()

    def _end(self) -> None:
        """Everything has stopped: commit, or discard; close; tell."""
        if not self.halt.is_set:
            self._commit()
        error = self.halt.error(self._job_name)
        for member in self._members:
            member.close(error)
        for name, meta_supplier in self._meta_suppliers:
            _close(name, meta_supplier, error)
        if error is not None:
            self._discard()
        self._on_end(error)

    def _commit(self) -> None:
        try:
            for name, sink in self._plan.sinks:
                with at(name):
                    sink.commit(self._sink_context(name))
            for name, meta_supplier in self._meta_suppliers:
                with at(name):
                    meta_supplier.commit()
        except LifeCycleFailed as error:
            self.halt.fail(error.failed)

    def _discard(self) -> None:
        for name, sink in self._plan.sinks:
            try:
                sink.discard(self._sink_context(name))
            except Exception:
                logger.exception("what vertex '%s' had written could not be removed", name)

    def _sink_context(self, name: str) -> MetaSupplierContext:
        parallelism = next(v.local_parallelism for v in self._plan.topology.vertices if v.name == name)
        return MetaSupplierContext(**self.context(name, parallelism))

    def _warn_slow(self, label: str, seconds: float) -> None:
        if label not in self._slow:
            self._slow.add(label)
            logger.warning(
                "%s: a call of cooperative vertex '%s' took %.0f ms and held up everything else on its thread; "
                "do less per call, or set cooperative = False on its processor",
                self._job_name,
                label,
                seconds * 1000,
            )


class MemberRun:
    """One member's part of an execution."""

    def __init__(
        self,
        job: JobRun,
        plan: Plan,
        index: int,
        suppliers: Mapping[str, ProcessorSupplier],
        single_partitions: Mapping[int, int],
        links: Links,
        service: ExecutionService,
    ) -> None:
        self._job = job
        self._plan = plan
        self._index = index
        self._suppliers = suppliers
        self._single_partitions = single_partitions
        self._links = links
        self._service = service
        self._processors: dict[str, Sequence[Processor]] = {}
        self.processor_tasklets: list[ProcessorTasklet] = []
        self._receivers: list[ReceiverTasklet] = []
        self.stretch_of: list[Stretch] = []
        """The stretch of each processor tasklet."""

    @property
    def tasklets(self) -> list[Tasklet]:
        return [*self._receivers, *self.processor_tasklets]

    def prepare(self, warn_slow: Callable[[str, float], None]) -> None:
        """Makes and initializes the processors, and puts the tasklets together."""
        plan, job = self._plan, self._job
        for stretch in plan.stretches:
            if stretch.chain is None:
                name = stretch.vertices[0].name
                with at(name):
                    context = job.context(name, stretch.local_parallelism)
                    self._suppliers[name].init(SupplierContext(**context, member_index=self._index))
        for stretch in plan.stretches:
            self._make_processors(stretch)
        assembly = Assembly(
            plan.topology,
            plan.stretches,
            member=self._index,
            single_partitions=self._single_partitions,
            links=self._links,
            halt=job.halt,
            warn_slow=warn_slow,
        )
        self.processor_tasklets, self._receivers = assembly.tasklets(self._processors)
        self.stretch_of = [stretch for stretch in plan.stretches for _ in range(stretch.local_parallelism)]
        for tasklet, stretch in zip(self.processor_tasklets, self.stretch_of):
            self._init(tasklet, stretch)

    def start(self, on_done: Callable[[Tasklet], None]) -> None:
        cooperative: list[Tasklet] = [*self._receivers]
        blocking: list[Tasklet] = []
        for tasklet in self.processor_tasklets:
            (cooperative if tasklet.processor.cooperative else blocking).append(tasklet)
        for each in blocking:
            self._service.submit_blocking(each, on_done)
        if cooperative:
            self._service.submit(cooperative, on_done)

    def close(self, error: BaseException | None) -> None:
        """Closes the processors, then their suppliers."""
        for stretch in self._plan.stretches:
            for processor in self._processors.get(stretch.vertices[0].name, ()):
                _close(stretch.label, processor, error)
        for name, supplier in self._suppliers.items():
            _close(name, supplier, error)

    def _make_processors(self, stretch: Stretch) -> None:
        name, count, chain = stretch.vertices[0].name, stretch.local_parallelism, stretch.chain
        if chain is not None:
            self._processors[name] = [ChainProcessor(chain) for _ in range(count)]
            return
        with at(name):
            supplier = self._suppliers[name]
            made: Any = supplier.get(count)
            if isinstance(made, Sequence):
                self._processors[name] = [p for p in made if isinstance(p, Processor)]  # so that all of them are closed
            check_processors(made, supplier, count, name)

    def _init(self, tasklet: ProcessorTasklet, stretch: Stretch) -> None:
        name = stretch.vertices[0].name
        context = ProcessorContext(
            **self._job.context(name, stretch.local_parallelism), member_index=self._index, local_index=tasklet.index
        )
        try:
            tasklet.processor.init(context)
        except BaseException as error:
            vertex = tasklet.processor.failed_at(tasklet.inbox).vertex or name
            raise LifeCycleFailed(Failed(error, vertex=vertex, processor=tasklet.index)) from error


class LifeCycleFailed(Exception):
    """A supplier or a processor raised before or after the tasklets ran. Never leaves the engine."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed)
        self.failed = failed


class at:
    """Says which vertex an error inside the block belongs to."""

    __slots__ = ("_vertex",)

    def __init__(self, vertex: str) -> None:
        self._vertex = vertex

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            raise LifeCycleFailed(Failed(error, vertex=self._vertex)) from error


def _close(name: str, thing: Processor | ProcessorSupplier | ProcessorMetaSupplier, error: BaseException | None) -> None:
    try:
        thing.close(error)
    except BaseException:
        logger.exception("close() of %s in vertex '%s' raised", type(thing).__name__, name)
