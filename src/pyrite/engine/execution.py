"""One execution of a DAG on the cooperative engine, from the call of its suppliers to the report of
its outcome.

The coordinator's part (`JobRun`) calls the meta-suppliers and commits; a member's part
(`MemberRun`) makes the processors and runs them.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pyrite.context import MetaSupplierContext, NamedCollection
from pyrite.dag import DAG
from pyrite.engine.ends import Links, NoLinks
from pyrite.engine.failure import Failed, Halt
from pyrite.engine.fusion import Stretch, fuse, step_of
from pyrite.engine.limits import handles_errors, too_many_bad_records
from pyrite.engine.member import LifeCycleFailed, MemberRun, RunContext, at, close_quietly
from pyrite.engine.metrics import VertexMetrics, gather
from pyrite.engine.plan import Topology, choose_single_partitions, plan_topology
from pyrite.engine.processes import this_process
from pyrite.engine.service import ExecutionService
from pyrite.engine.tasklets import Tasklet
from pyrite.processors.collections import ReadNamed
from pyrite.processors.loops.steps import Commit, ReadStep, WriteStep
from pyrite.suppliers import (
    ProcessorMetaSupplier,
    ProcessorSupplier,
    meta_supplier_of,
    suppliers_by_member,
)

logger = logging.getLogger("pyrite.engine")

OnEnd = Callable[[BaseException | None], None]

_CHOICE: Final = random.SystemRandom()
"""It has no state to seed: seeding one for each job took a third of the time of a small job."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What all executions of one DAG share. It is made once, so that later executions start
    faster."""

    topology: Topology
    stretches: tuple[Stretch, ...]
    suppliers: Mapping[str, Any]
    sinks: tuple[tuple[str, WriteStep], ...]
    reads: tuple[NamedCollection, ...]
    """The named maps and lists that sources read."""
    looks: tuple[tuple[str, ReadStep], ...]
    """The sources that look for what they read, by vertex."""

    @property
    def runs_users_life_cycles(self) -> bool:
        """Whether the start or the end of the job calls code that may block: the user's suppliers
        and processors, or a sink that writes files."""
        return bool(self.sinks) or any(stretch.chain is None for stretch in self.stretches)

    @staticmethod
    def of(dag: DAG, *, member_count: int, default_parallelism: int) -> Plan:
        """Validates and plans the DAG, or returns the plan that was made before."""

        def make(dag: DAG) -> Plan:
            topology = plan_topology(
                dag, member_count=member_count, default_parallelism=default_parallelism
            )
            suppliers = {vertex.name: vertex.supplier for vertex in dag.vertices}
            sinks = committing_sinks(suppliers)
            steps = [step_of(supplier) for supplier in suppliers.values()]
            reads = {(step.kind, step.name) for step in steps if isinstance(step, ReadNamed)}
            looks = tuple(
                (name, step)
                for name, step in zip(suppliers, steps)
                if isinstance(step, ReadStep) and step.looks
            )
            return Plan(topology, fuse(topology, suppliers), suppliers, sinks, tuple(reads), looks)

        return dag.derived(("engine", member_count, default_parallelism), make)


def committing_sinks(suppliers: Mapping[str, Any]) -> tuple[tuple[str, WriteStep], ...]:
    """The sinks whose output becomes visible by a commit, by the names of their vertices."""
    steps = [(name, step_of(supplier)) for name, supplier in suppliers.items()]
    return tuple(
        (name, step) for name, step in steps if isinstance(step, WriteStep) and step.commits
    )


class MetaSuppliers:
    """The meta-suppliers of one execution, on its coordinator, from `init` to `close`. It also
    commits the sinks."""

    def __init__(
        self,
        run: RunContext,
        topology: Topology,
        suppliers: Mapping[str, Any],
        sinks: Sequence[tuple[str, WriteStep]],
        *,
        addresses: Sequence[str] | None = None,
        asked: Sequence[tuple[str, ProcessorMetaSupplier]] = (),
    ) -> None:
        """`asked` are the user's meta-suppliers, if they were asked for their suppliers before."""
        self._run = run
        self._addresses = addresses or [f"member-{n}" for n in range(topology.member_count)]
        self._parallelism = {vertex.name: vertex.local_parallelism for vertex in topology.vertices}
        self._sinks = sinks
        self._suppliers = suppliers
        self._users = {
            name: supplier for name, supplier in suppliers.items() if step_of(supplier) is None
        }
        self._asked = list(asked)
        self._commits: list[tuple[str, Commit]] = []

    @property
    def asked(self) -> Sequence[tuple[str, ProcessorMetaSupplier]]:
        """The user's meta-suppliers, by vertex."""
        return tuple(self._asked)

    def begin_sinks(self) -> None:
        """Prepares the sinks that must be committed. Raises LifeCycleFailed if one cannot be
        written to."""
        for name, sink in self._sinks:
            with at(name):
                self._commits.append((name, sink.begin(self._context(name))))

    def prepare_sinks(self) -> None:
        """Prepares all sinks of a durable job, when it is submitted. Raises LifeCycleFailed if one
        cannot be written to; then nothing is left of the others."""
        prepared: list[tuple[str, WriteStep]] = []
        try:
            for name, supplier in self._suppliers.items():
                sink = step_of(supplier)
                if isinstance(sink, WriteStep):
                    with at(name):
                        sink.prepare(self._context(name))
                    if sink.commits:
                        prepared.append((name, sink))
        except LifeCycleFailed:
            for name, sink in reversed(prepared):
                _quietly(name, "remove what was prepared for", partial(self._discard, name, sink))
            raise

    def resume_sinks(self) -> None:
        """Takes over the sinks of a durable job that were prepared, to commit them or, with
        `close`, to discard them. Raises LifeCycleFailed, because of TargetIsTaken if another job
        has one of the targets; then none is held."""
        try:
            for name, sink in self._sinks:
                with at(name):
                    self._commits.append((name, sink.resume(self._context(name))))
        except LifeCycleFailed:
            self.let_sinks_go()
            raise

    def let_sinks_go(self) -> None:
        """Releases the sinks that were resumed, unless they are committed or discarded: this
        process lives on, and another one must be able to resume them."""
        while self._commits:
            self._commits.pop()[1].let_go()

    def suppliers_by_member(self) -> list[dict[str, ProcessorSupplier]]:
        """Initializes the meta-suppliers and gets the suppliers of each member from them, by
        vertex."""
        self._asked = [
            (name, meta_supplier_of(supplier, name)) for name, supplier in self._users.items()
        ]
        addresses = self._addresses
        by_member: list[dict[str, ProcessorSupplier]] = [{} for _ in addresses]
        for name, meta_supplier in self._asked:
            with at(name):
                meta_supplier.init(self._context(name))
        for name, meta_supplier in self._asked:
            with at(name):
                for suppliers, supplier in zip(
                    by_member, suppliers_by_member(meta_supplier, addresses, name)
                ):
                    suppliers[name] = supplier
        return by_member

    @contextmanager
    def committed(self, reports: Mapping[str, Sequence[Any]]) -> Iterator[None]:
        """Makes visible what the sinks wrote, then runs the block. If either raises, restores what
        was there before.

        Raises LifeCycleFailed.
        """
        begun: list[tuple[str, Commit]] = []
        try:
            for name, commit in self._commits:
                begun.append((name, commit))
                with at(name):
                    commit.commit(reports.get(name, ()))
            for name, meta_supplier in self._asked:
                with at(name):
                    meta_supplier.commit()
            for name, commit in self._commits:
                with at(name):
                    commit.seal()
            yield
        except BaseException:
            for name, commit in reversed(begun):
                _quietly(name, "restore what was there before", commit.undo)
            raise
        for name, commit in self._commits:
            _quietly(name, "tidy up after", commit.finish)

    def close(self, error: BaseException | None) -> None:
        for name, meta_supplier in self._asked:
            close_quietly(name, meta_supplier, error)
        if error is None:
            return
        # In reverse: a folder that one sink made inside the folder of another goes first.
        for name, commit in reversed(self._commits):
            _quietly(name, "remove what was written by", commit.discard)

    def _discard(self, name: str, sink: WriteStep) -> None:
        sink.resume(self._context(name)).discard()

    def _context(self, name: str) -> MetaSupplierContext:
        return MetaSupplierContext(**self._run.fields(name, self._parallelism[name]))


def _quietly(vertex: str, what: str, act: Callable[[], None]) -> None:
    """Calls a method of a sink after the outcome of the job is decided: an error is only logged."""
    try:
        act()
    except Exception:
        logger.exception("could not %s vertex '%s'", what, vertex)


def flush_into(halt: Halt, flush: Callable[[], None]) -> None:
    """Waits for what is still being written, unless the execution was stopped. An error is its
    outcome."""
    if not halt.is_set:
        try:
            flush()
        except BaseException as error:
            halt.fail(Failed(error))


def complete_into(halt: Halt, member: MemberRun) -> None:
    """Completes the suppliers of a member, unless the execution was stopped. An error is its
    outcome."""
    if not halt.is_set:
        try:
            member.complete()
        except LifeCycleFailed as error:
            halt.fail(error.failed)


def _nothing() -> None:
    pass


class JobRun:
    """Runs a plan once. `begin` returns at once; `on_end` is called when everything has stopped and
    every processor is closed."""

    def __init__(
        self,
        plan: Plan,
        run: RunContext,
        *,
        service: ExecutionService,
        on_end: OnEnd,
        on_running: Callable[[], None],
        links: Sequence[Links] | None = None,
    ) -> None:
        self._plan = plan
        self._run = run
        self._service = service
        self._on_end = on_end
        self._on_running = on_running
        self._links = links or [NoLinks()]
        self._members: list[MemberRun] = []
        self._meta_suppliers = MetaSuppliers(run, plan.topology, plan.suppliers, plan.sinks)
        self._left = 0
        self._lock = threading.Lock()
        self._slow: set[str] = set()
        self._has_ended = False
        self.flush: Callable[[], None] = _nothing
        """Called at the end: it waits for what is still being written."""

    def begin(self) -> None:
        if self._plan.runs_users_life_cycles:
            self._service.threads.run(self._start)
        else:
            self._start()

    def cancel(self) -> None:
        self._run.halt.cancel()
        self._run.wake()

    def metrics(self) -> dict[str, VertexMetrics]:
        return gather(
            self._plan.topology, [(m.stretch_of, m.processor_tasklets) for m in self._members]
        )

    def members(self) -> list[dict[str, Any]]:
        """The process that the job runs in."""
        return [] if self._has_ended else [this_process("0")]

    def _start(self) -> None:
        halt = self._run.halt
        if halt.is_set:  # it was cancelled before it started
            self._end()
            return
        try:
            self._prepare()
        except LifeCycleFailed as error:
            halt.fail(error.failed)
            self._end()
            return
        except KeyboardInterrupt:  # in the caller's own thread
            halt.cancel()
            self._end()
            raise
        except BaseException as error:
            halt.fail(Failed(error))
            self._end()
            return
        self._on_running()
        self._left = sum(len(member.tasklets) for member in self._members)
        for member in self._members:
            member.start(self._service, self._tasklet_done)

    def _prepare(self) -> None:
        plan = self._plan
        self._meta_suppliers.begin_sinks()
        by_member = self._meta_suppliers.suppliers_by_member()
        single_partitions = choose_single_partitions(plan.topology, _CHOICE)
        self._members = [
            MemberRun(
                self._run,
                plan.topology,
                plan.stretches,
                index=index,
                suppliers=suppliers,
                single_partitions=single_partitions,
                links=links,
            )
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
        """Called when all tasklets have stopped: commits or discards, closes, and reports the
        outcome."""
        halt = self._run.halt
        flush_into(halt, self.flush)
        if not halt.is_set and handles_errors(self._plan.topology):
            excess = too_many_bad_records(self._plan.topology, self.metrics())
            if excess is not None:
                halt.fail(excess)
        for member in self._members:
            complete_into(halt, member)
        if halt.seal():
            try:
                with self._meta_suppliers.committed(self._reports()):
                    pass
            except LifeCycleFailed as failed:
                halt.fail(failed.failed)
        error = halt.error(self._run.job_name)
        for member in self._members:
            member.close(error)
        self._meta_suppliers.close(error)
        self._has_ended = True
        self._on_end(error)

    def _reports(self) -> dict[str, list[Any]]:
        reports: dict[str, list[Any]] = {}
        for member in self._members:
            for vertex, of_member in member.reports().items():
                reports.setdefault(vertex, []).extend(of_member)
        return reports

    def _warn_slow(self, label: str, seconds: float) -> None:
        if label not in self._slow:
            self._slow.add(label)
            logger.warning(
                "%s: a call of cooperative vertex '%s' took %.0f ms and blocked everything else on "
                "its thread; do less per call, or set cooperative = False on its processor",
                self._run.job_name,
                label,
                seconds * 1000,
            )
