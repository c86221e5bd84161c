"""The last part of a job: when all tasks have sealed, it makes visible what the sinks wrote, and
puts the additions into the named maps and lists.

Everything here may be repeated: a peer that dies in the middle is followed by another.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from pyrite.collections.stored.unavailable import NameIsTaken
from pyrite.context import Collections
from pyrite.durable.parts.code import JobCode
from pyrite.durable.parts.committing import commit, new_attempt, take_part_over
from pyrite.durable.parts.running import PartFailed
from pyrite.durable.parts.told import Added, Asked, Measured, Reported, Told
from pyrite.durable.protocol.exactness.commits import Commit
from pyrite.durable.protocol.exactness.reading import Came, has_ended
from pyrite.durable.protocol.workflow import COMPLETION, Part
from pyrite.durable.queues.queues import Delivery, Queues
from pyrite.engine.execution import MetaSuppliers
from pyrite.engine.failure import Failed
from pyrite.engine.limits import too_many_bad_records
from pyrite.engine.member import LifeCycleFailed, RunContext
from pyrite.engine.metrics import VertexMetrics, added_up, plus
from pyrite.exchange.collected import Collected
from pyrite.processors.loops.steps import TargetIsTaken
from pyrite.suppliers import ProcessorMetaSupplier

logger = logging.getLogger("pyrite.durable")

READ_AHEAD: Final = 64
IDLE_SECONDS: Final = 0.05
TAKEN_SECONDS: Final = 0.2


class JobCollections(Collections, Protocol):
    """The named maps and lists that durable jobs write to."""

    def apply(self, job: str, collected: Iterable[Collected]) -> object:
        """Adds everything in one step. A second call for the same job changes nothing."""

    def close(self) -> None: ...


class CompletionPart:
    """`check` is called often; it raises PartStopped when the part was taken away."""

    def __init__(
        self,
        code: JobCode,
        part: Part,
        queues: Queues,
        collections: JobCollections,
        *,
        offer: int,
        check: Callable[[], None],
    ) -> None:
        self._code = code
        self._part = part
        self._queues = queues
        self._collections = collections
        self._check = check
        self._workflow = code.planned.workflow
        self._edges = self._workflow.by_name[COMPLETION].edges
        self._stored = take_part_over(queues, part, offer)
        self._reports: dict[str, list[Any]] = {}
        self._metrics: dict[int, Mapping[str, VertexMetrics]] = {}
        self._asked: list[tuple[str, ProcessorMetaSupplier]] = []

    def run(self, seal: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Returns the metrics of the job. `seal` is called before anything becomes visible: from
        then on the job cannot be cancelled."""
        self._wait_for_all()
        order = [vertex.name for vertex in self._code.planned.topology.vertices]
        metrics = added_up(list(self._metrics.values()), order)
        excess = too_many_bad_records(self._code.planned.topology, metrics)
        if excess is not None:
            raise PartFailed(excess)
        seal()
        if not self._stored.record.is_over:
            try:
                self._complete()
            except LifeCycleFailed as failed:
                raise PartFailed(failed.failed) from failed
            except NameIsTaken as taken:
                raise PartFailed(Failed(taken)) from taken
            record = replace(self._stored.record, attempt=new_attempt(), is_over=True)
            asked = Commit(self._stored.sequence, record)
            self._stored = commit(self._queues, self._part, asked, (), b"")
        return metrics

    def _wait_for_all(self) -> None:
        """Reads everything once. Additions are only passed over, since they may not fit into
        memory."""
        came: set[Came] = set()
        positions: dict[tuple[str, int], int] = {}
        while True:
            self._check()
            found = False
            for delivery in self._messages(positions):
                found = True
                sentinel = delivery.message.sentinel
                if sentinel is not None:
                    came.add(Came(sentinel.end.edge, sentinel.end.upstream, delivery.server))
                    continue
                for told in _told(delivery):
                    if isinstance(told, Reported):
                        self._reports.setdefault(told.vertex, []).extend(told.reports)
                    elif isinstance(told, Asked):
                        self._asked.append((told.vertex, told.meta_supplier))
                    elif isinstance(told, Measured):
                        before = self._metrics.get(told.member, {})
                        self._metrics[told.member] = plus(before, told.metrics)
            if all(
                has_ended(self._workflow, edge, came, servers=self._queues.servers)
                for edge in self._edges
            ):
                return
            if not found:
                self._queues.wait([self._part], IDLE_SECONDS)

    def _complete(self) -> None:
        """First the sinks and the meta-suppliers, then the collections: these cannot be refused any
        more, and what came before can be put back until then."""
        meta_suppliers = meta_suppliers_of(self._code, self._collections, self._asked)
        self._resume_sinks(meta_suppliers)
        try:
            with meta_suppliers.committed(self._reports):
                self._check()
                self._collections.apply(self._part.job, self._collected())
        except BaseException:
            meta_suppliers.let_sinks_go()  # for whoever completes the job, or discards it
            raise
        meta_suppliers.close(None)

    def _resume_sinks(self, meta_suppliers: MetaSuppliers) -> None:
        """Waits as long as another job has one of the targets."""
        while True:
            try:
                return meta_suppliers.resume_sinks()
            except LifeCycleFailed as failed:
                if not isinstance(failed.failed.error, TargetIsTaken):
                    raise
                self._queues.wait([], TAKEN_SECONDS)
                self._check()

    def _collected(self) -> Iterator[Collected]:
        for delivery in self._messages({}):
            for told in _told(delivery):
                if isinstance(told, Added):
                    yield told.collected

    def _messages(self, positions: dict[tuple[str, int], int]) -> Iterator[Delivery]:
        """All messages from these positions on, which move."""
        for edge in self._edges:
            for server in range(self._queues.servers):
                place = (edge.name, server)
                while read := self._queues.read(
                    self._part, edge.name, server, positions.get(place, 0), limit=READ_AHEAD
                ):
                    positions[place] = read[-1].sequence + 1
                    yield from read


def meta_suppliers_of(
    code: JobCode,
    collections: Collections,
    told: Sequence[tuple[str, ProcessorMetaSupplier]] = (),
) -> MetaSuppliers:
    """`told` are those that were asked when the job ran, not when it was submitted."""
    topology = code.planned.topology
    run = RunContext(
        job_name=code.job_name,
        job_id=code.job_id,
        execution_id=code.execution_id,
        member_count=topology.member_count,
        collections=collections,
    )
    return MetaSuppliers(run, topology, code.steps, code.sinks, asked=[*code.meta_suppliers, *told])


def discard(code: JobCode, collections: Collections, error: BaseException) -> None:
    """Removes what a job that was cancelled, or has failed, has written. May be repeated."""
    meta_suppliers = meta_suppliers_of(code, collections)
    try:
        meta_suppliers.resume_sinks()
    except LifeCycleFailed as failed:
        logger.warning("what %s has written is left: %s", code.job_name, failed.failed.error)
    meta_suppliers.close(error)


def _told(delivery: Delivery) -> Sequence[Told]:
    if delivery.message.sentinel is not None:
        return ()
    told: Sequence[Told] = pickle.loads(delivery.message.body)
    return told
