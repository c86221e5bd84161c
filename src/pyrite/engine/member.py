"""One member's part of an execution: it makes and initializes the processors, runs them as tasklets
and closes them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyrite.bad_records import Handler
from pyrite.context import Collections, MemberShare, ProcessorContext, SupplierContext
from pyrite.engine.assembly import Assembly
from pyrite.engine.ends import Links
from pyrite.engine.failure import Failed, Halt
from pyrite.engine.forgiving import Forgiving
from pyrite.engine.fusion import Stretch
from pyrite.engine.plan import Topology
from pyrite.engine.service import ExecutionService
from pyrite.engine.tasklets import ProcessorTasklet, ReceiverTasklet, Tasklet
from pyrite.pace import SteadyPace
from pyrite.processor import AbstractProcessor, HandlesErrors, Processor
from pyrite.processors.loops.chain import ChainProcessor
from pyrite.processors.loops.fused import FusedProcessor
from pyrite.processors.loops.steps import BadItem
from pyrite.suppliers import ProcessorMetaSupplier, ProcessorSupplier, check_processors
from pyrite.whereabouts import Whereabouts

logger = logging.getLogger("pyrite.engine")


def _nothing() -> None:
    pass


@dataclass(slots=True, kw_only=True)
class RunContext:
    """What all parts of one execution share."""

    job_name: str
    job_id: str
    execution_id: str
    member_count: int
    collections: Collections
    attempt: str = "0"
    must_repeat: bool = False
    start: str = ""
    memory_budget: int | None = None
    batch_budget: int | None = None
    member_share: MemberShare | None = None
    files: Path | None = None
    halt: Halt = field(default_factory=Halt)
    wake: Callable[[], None] = _nothing
    """Ends a wait of the threads that call the tasklets."""
    inline_columns: bool = False
    """Whether processors that work on batches of rows run on the thread of the others, as in a
    Spark task, in which nothing else waits for it: so their order can be repeated."""
    _made: dict[Hashable, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def fields(self, vertex: str, local_parallelism: int) -> dict[str, Any]:
        """The fields that all kinds of contexts have."""
        return {
            "vertex_name": vertex,
            "local_parallelism": local_parallelism,
            "member_count": self.member_count,
            "job_id": self.job_id,
            "execution_id": self.execution_id,
            "collections": self.collections,
            "job_name": self.job_name,
            "log_name": "" if self.halt.run is None else self.halt.run.job,
            "is_cancelled": self.is_halted,
        }

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` returned when it was first called for this key."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    def tell_found(self, found: Mapping[str, Any]) -> None:
        """What sources have found, by vertex, so that they do not look again."""
        self._made.update({("found", vertex): step for vertex, step in found.items()})

    def is_halted(self) -> bool:
        return self.halt.is_set


class MemberRun:
    """One member's part of an execution."""

    def __init__(
        self,
        run: RunContext,
        topology: Topology,
        stretches: Sequence[Stretch],
        *,
        index: int,
        suppliers: Mapping[str, ProcessorSupplier],
        single_partitions: Mapping[int, int],
        links: Links,
        grouped: Collection[int] = (),
    ) -> None:
        self._run = run
        names = [vertex.name for vertex in topology.vertices]
        run.halt.run = Whereabouts.of(run.job_name, run.execution_id, names)
        self._topology = topology
        self._stretches = stretches
        self._index = index
        self._suppliers = suppliers
        self._single_partitions = single_partitions
        self._links = links
        self._grouped = grouped
        self._processors: dict[str, Sequence[Processor]] = {}
        self.processor_tasklets: list[ProcessorTasklet] = []
        self._receivers: list[ReceiverTasklet] = []
        self.stretch_of: list[Stretch] = []
        """The stretch of each processor tasklet."""

    @property
    def tasklets(self) -> list[Tasklet]:
        return [*self._receivers, *self.processor_tasklets]

    def keep_steady_pace(self) -> None:
        """From now on, how much is done at a time does not depend on how long it takes."""
        for tasklet in self.processor_tasklets:
            tasklet.pace = SteadyPace()
            tasklet.is_steady = True
            if isinstance(tasklet.processor, ChainProcessor):
                tasklet.processor.pace = SteadyPace()
            elif isinstance(tasklet.processor, (AbstractProcessor, Forgiving)):
                tasklet.processor.keep_steady_pace()

    def prepare(self, warn_slow: Callable[[str, float], None]) -> None:
        """Makes and initializes the processors, and puts the tasklets together."""
        for stretch in self._stretches:
            if stretch.chain is None:
                name = stretch.vertices[0].name
                with at(name):
                    context = self._run.fields(name, stretch.local_parallelism)
                    self._suppliers[name].init(SupplierContext(**context, member_index=self._index))
        for stretch in self._stretches:
            self._make_processors(stretch)
        assembly = Assembly(
            self._topology,
            self._stretches,
            member=self._index,
            single_partitions=self._single_partitions,
            links=self._links,
            halt=self._run.halt,
            warn_slow=warn_slow,
            grouped=self._grouped,
        )
        self.processor_tasklets, self._receivers = assembly.tasklets(self._processors)
        self.stretch_of = [
            stretch for stretch in self._stretches for _ in range(stretch.local_parallelism)
        ]
        for tasklet, stretch in zip(self.processor_tasklets, self.stretch_of):
            self._handle_errors(tasklet, stretch)
            self._init(tasklet, stretch)

    def _handle_errors(self, tasklet: ProcessorTasklet, stretch: Stretch) -> None:
        if all(vertex.handling is None for vertex in stretch.vertices):
            return
        letters = iter(tasklet.outbox.letters)
        tasklet.handlers = [
            None
            if vertex.handling is None
            else Handler(
                vertex.name,
                vertex.handling,
                next(letters) if vertex.handling.keeps else None,
                self._run.once(("bad records", vertex.name), list),
                blocks=self._run.must_repeat,
            )
            for vertex in stretch.vertices
        ]
        assert isinstance(tasklet.processor, HandlesErrors)
        tasklet.processor.handle_errors(tasklet.handlers)

    def reports(self) -> dict[str, list[Any]]:
        """By sink, what its writers returned when they completed."""
        reports: dict[str, list[Any]] = {}
        for tasklet, stretch in zip(self.processor_tasklets, self.stretch_of):
            if (
                isinstance(tasklet.processor, FusedProcessor)
                and tasklet.processor.chain.sink is not None
            ):
                reports.setdefault(stretch.vertices[-1].name, []).append(tasklet.processor.report)
        return reports

    def start(self, service: ExecutionService, on_done: Callable[[Tasklet], None]) -> None:
        cooperative: list[Tasklet] = [*self._receivers]
        blocking: list[Tasklet] = []
        for tasklet in self.processor_tasklets:
            (cooperative if tasklet.processor.cooperative else blocking).append(tasklet)
        if cooperative:
            service.submit(cooperative, on_done)
        for each in blocking:
            try:
                service.submit_blocking(each, on_done)
            except RuntimeError as error:  # no more threads can be started
                self._run.halt.fail(Failed(error))
                on_done(each)

    def complete(self) -> None:
        """Completes the suppliers, after all tasklets are done. Raises LifeCycleFailed."""
        for name, supplier in self._suppliers.items():
            with at(name):
                supplier.complete()

    def close(self, error: BaseException | None) -> None:
        """Closes the processors, then their suppliers."""
        for stretch in self._stretches:
            for processor in self._processors.get(stretch.vertices[0].name, ()):
                close_quietly(stretch.label, processor, error)
        for name, supplier in self._suppliers.items():
            close_quietly(name, supplier, error)

    def _make_processors(self, stretch: Stretch) -> None:
        name, count, chain = stretch.vertices[0].name, stretch.local_parallelism, stretch.chain
        if chain is not None:
            self._processors[name] = [chain.processor() for _ in range(count)]
            self._run_columns_inline(name)
            return
        with at(name):
            supplier = self._suppliers[name]
            made: Any = supplier.get(count)
            if isinstance(made, Sequence):
                # Even if the check below fails, each of them is closed once.
                self._processors[name] = list(
                    {id(p): p for p in made if isinstance(p, Processor)}.values()
                )
            check_processors(made, supplier, count, name)
            self._run_columns_inline(name)
            if stretch.vertices[0].handling is not None:
                self._processors[name] = [
                    Forgiving(each) if not isinstance(each, HandlesErrors) else each
                    for each in self._processors[name]
                ]

    def _run_columns_inline(self, name: str) -> None:
        for processor in self._processors[name] if self._run.inline_columns else ():
            if processor.columnar:
                processor.cooperative = True

    def _init(self, tasklet: ProcessorTasklet, stretch: Stretch) -> None:
        name = stretch.vertices[0].name
        context = ProcessorContext(
            **self._run.fields(name, stretch.local_parallelism),
            member_index=self._index,
            local_index=tasklet.index,
            attempt=self._run.attempt,
            must_repeat=self._run.must_repeat,
            start=self._run.start,
            memory_budget=self._run.memory_budget,
            batch_budget=self._run.batch_budget,
            once=self._run.once,
            wake=self._run.wake,
            member_share=self._run.member_share,
            files=self._run.files,
        )
        try:
            tasklet.processor.init(context)
        except BaseException as error:
            vertex = tasklet.processor.failed_at(tasklet.inbox).vertex or name
            raise LifeCycleFailed(Failed(error, vertex=vertex, processor=tasklet.index)) from error


class LifeCycleFailed(Exception):
    """A supplier or a processor raised before or after the tasklets ran. It is caught inside the
    engine."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed)
        self.failed = failed


class at:
    """Turns an error inside the block into a LifeCycleFailed that names the vertex."""

    __slots__ = ("_vertex",)

    def __init__(self, vertex: str) -> None:
        self._vertex = vertex

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            item = error.item if isinstance(error, BadItem) else None
            raise LifeCycleFailed(Failed(error, vertex=self._vertex, item=item)) from error


def close_quietly(
    name: str,
    thing: Processor | ProcessorSupplier | ProcessorMetaSupplier,
    error: BaseException | None,
) -> None:
    try:
        thing.close(error)
    except BaseException:
        logger.exception("close() of %s in vertex '%s' raised", type(thing).__name__, name)
