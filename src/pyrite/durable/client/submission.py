"""Submits a job: plans it, cuts its sources, makes its queues, and asks the coordinator to run
it."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyrite.columns.packing.item_pickling import dumps_by_reference, dumps_code
from pyrite.context import Collections
from pyrite.dag import DAG
from pyrite.durable.client.shape import Shape, shape_of
from pyrite.durable.parts.code import JobCode, pack_code
from pyrite.durable.planning.splits import Cut, cut
from pyrite.durable.planning.tasks import (
    PlannedJob,
    edge_name,
    plan_tasks,
    with_splits,
)
from pyrite.durable.protocol.exactness.sentinels import End, Sentinel
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.workflow import SPLITS, Part, Workflow
from pyrite.durable.queues.queues import Message, Outgoing, Queues, QueuesError
from pyrite.durable.store.store import Store
from pyrite.engine.execution import MetaSuppliers, committing_sinks
from pyrite.engine.failure import Failed
from pyrite.engine.fusion import step_of
from pyrite.engine.member import LifeCycleFailed, RunContext
from pyrite.engine.plan import choose_single_partitions, plan_topology
from pyrite.errors import PyriteError
from pyrite.exchange.deployment import Deployment
from pyrite.exchange.reach import check_reach
from pyrite.exchange.serializable import check_serializable
from pyrite.functions import shorten
from pyrite.job import Job
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import ReadStep, WriteStep
from pyrite.weights import is_batch

logger = logging.getLogger("pyrite.durable")

DEFAULT_MEMBERS: Final = 8


@dataclass(frozen=True, slots=True)
class Catalog:
    """What people see of a job in lists."""

    name: str | None
    submitted: float

    def text(self) -> str:
        return json.dumps([self.name, self.submitted], separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Catalog:
        return cls(*json.loads(text))


class Submission:
    """One job on its way. Planning raises InvalidDAG at once; `send` does the work."""

    def __init__(self, job: Job, id: str, collections: Collections, queues: Queues) -> None:
        self._job = job
        self._id = id
        self._queues = queues
        self._deployment = Deployment.of(job.config)
        self._cuts: dict[str, Cut] = {}
        self._suppliers: dict[str, Any] = {}
        self._planned = self._plan(job, collections)
        self._run = RunContext(
            job_name=job.name,
            job_id=job.id,
            execution_id=id,
            member_count=job.config.members or DEFAULT_MEMBERS,
            collections=collections,
        )

    def _plan(self, job: Job, collections: Collections) -> PlannedJob:
        check_serializable(job.dag, to="the peers of a durable job", stays=(ReadStep,))
        suppliers = self._suppliers
        for vertex in job.dag.vertices:
            suppliers[vertex.name] = vertex.supplier
            step = step_of(vertex.supplier)
            if isinstance(step, WriteStep):
                check_reach(step, vertex.name, "process of a durable job")
            if isinstance(step, ReadStep):
                made = cut(step, vertex.name, collections=collections)
                if made is not None:
                    self._cuts[vertex.name] = made
                    suppliers[vertex.name] = StepSupplier(made.step)
        return _planned(job.dag, job, suppliers, list(self._cuts))

    def send(self, ask: Callable[[Callable[[Store], None]], None]) -> None:
        """`ask` does something with the store. Raises JobFailed if a sink cannot be written, or if
        a supplier or an iterable of the user's raises."""
        code = self._code()
        workflow, catalog = self._planned.workflow, Catalog(self._job.config.name, time.time())
        shape = shape_of(self._job, self._planned)
        try:
            packed = pack_code(code, self._deployment)
            self._queues.open_job(self._id, workflow, self._first(), code=packed)
            ask(lambda store: _write(store, self._id, catalog, shape, workflow))
        except BaseException as error:
            if not self._is_planned(ask):
                self._take_back(error)
                raise
            if not isinstance(error, Exception):  # Ctrl-C: the job runs, but its user leaves
                raise

    def _is_planned(self, ask: Callable[[Callable[[Store], None]], None]) -> bool:
        """Whether the coordinator knows of the job, after an error that does not tell."""
        found: list[bool] = []

        def look(store: Store) -> None:
            nodes = (paths.plan(self._id), paths.job(self._id))
            found.append(any(store.get(node) is not None for node in nodes))

        try:
            ask(look)
        except Exception:
            logger.warning("whether %s was submitted is not known", self._job.name, exc_info=True)
            return True
        return found[0]

    def discard(self, error: BaseException) -> None:
        """Removes what the job has written, after it was cancelled or has failed. Peers that were
        on the job do this too, and it may be repeated."""
        try:
            self._meta_suppliers.resume_sinks()
        except LifeCycleFailed as failed:
            logger.warning("what %s wrote was not removed: %s", self._job.name, failed.failed.error)
        self._meta_suppliers.close(error)

    def _take_back(self, error: BaseException) -> None:
        try:
            self._queues.close_job(self._id)
        except QueuesError:
            logger.debug("the queues of %s are left", self._job.name, exc_info=True)
        self.discard(error)

    def _code(self) -> JobCode:
        topology, sinks = self._planned.topology, committing_sinks(self._suppliers)
        meta_suppliers = MetaSuppliers(self._run, topology, self._suppliers, sinks)
        self._meta_suppliers = meta_suppliers
        try:
            meta_suppliers.prepare_sinks()
            try:
                by_member = meta_suppliers.suppliers_by_member()
            except BaseException as raised:
                self.discard(raised)
                raise
        except LifeCycleFailed as failed:
            raise failed.failed.to_job_failed(self._job.name) from failed.failed.error
        return JobCode(
            planned=self._planned,
            steps={n: s for n, s in self._suppliers.items() if step_of(s) is not None},
            suppliers=by_member,
            meta_suppliers=meta_suppliers.asked,
            sinks=sinks,
            single_partitions=choose_single_partitions(topology, random.Random()),
            job_name=self._job.name,
            job_id=self._job.id,
            execution_id=self._id,
            tries=self._job.config.tries,
        )

    def _first(self) -> Iterator[Outgoing]:
        """The splits of the sources, then the sentinels that end them."""
        for task in self._planned.tasks:
            parts = self._parts(task.name)
            for name, edge in task.inbound.items():
                if edge is None or not edge.source:
                    if edge is not None:
                        yield from self._splits(edge.destination, edge_name(edge), parts)
                    sentinel = Message(name, sentinel=Sentinel(End(name, SPLITS)))
                    servers: Sequence[int | None] = (
                        [None] if task.kind == "concurrent" else range(self._queues.servers)
                    )
                    yield from (
                        Outgoing(part, sentinel, server) for part in parts for server in servers
                    )

    def _splits(self, vertex: str, edge: str, parts: Sequence[Part]) -> Iterator[Outgoing]:
        for number, split in enumerate(self._read(vertex)):
            for body in _bodies(split, vertex, self._queues.most_bytes):
                yield Outgoing(parts[number % len(parts)], Message(edge, body))

    def _read(self, vertex: str) -> Iterator[Any]:
        """The splits of a source. Raises JobFailed if the user's iterable raises."""
        try:
            yield from self._cuts[vertex].splits
        except PyriteError:
            raise
        except Exception as error:
            failed = Failed(error, vertex=vertex).to_job_failed(self._job.name)
            if (origin := self._job.dag[vertex].origin) is not None:
                failed.args = (f"{failed} (the step was added in {origin})",)
            raise failed from error

    def _parts(self, task: str) -> list[Part]:
        return [
            Part(self._id, task, member)
            for member in range(self._planned.workflow.by_name[task].parts)
        ]


def _write(store: Store, id: str, catalog: Catalog, shape: Shape, workflow: Workflow) -> None:
    """The plan is last: the coordinator finds the others when it sees it."""
    store.create(paths.catalog(id), catalog.text())
    if (text := shape.text()) is not None:
        store.create(paths.shape(id), text)
    store.create(paths.workflow(id), workflow.text())
    store.create(paths.plan(id))


def _planned(
    dag: DAG, job: Job, suppliers: Mapping[str, Any], cut_sources: Sequence[str]
) -> PlannedJob:
    topology = plan_topology(
        dag,
        member_count=job.config.members or DEFAULT_MEMBERS,
        default_parallelism=1,
        partition_count=job.config.partitions,
    )
    return plan_tasks(with_splits(topology, cut_sources), suppliers)


def _bodies(split: Any, vertex: str, most_bytes: int) -> Iterator[bytes]:
    """The messages of a split: one, unless it is too long for one."""
    try:
        body = dumps_by_reference([(None, [split])], split)
        if b"__main__" in body:  # a class of the user's script, which peers cannot import
            body = dumps_code([(None, [split])])
    except Exception:
        try:
            body = dumps_code([(None, [split])])
        except Exception as error:
            raise PyriteError(
                f"an item of vertex '{vertex}' cannot be pickled: {error}; a durable job keeps the"
                f" items of its sources in queues. The items were {shorten(split)}"
            ) from error
    if len(body) <= most_bytes:
        yield body
    elif isinstance(split, (list, tuple, str, bytes)) and len(split) > 1:
        half = len(split) // 2
        yield from _bodies(split[:half], vertex, most_bytes)
        yield from _bodies(split[half:], vertex, most_bytes)
    elif isinstance(split, list) and is_batch(split[0]) and split[0].num_rows > 1:
        half = split[0].num_rows // 2
        yield from _bodies([split[0].slice(0, half)], vertex, most_bytes)
        yield from _bodies([split[0].slice(half)], vertex, most_bytes)
    else:
        raise PyriteError(
            f"an item of vertex '{vertex}' has {len(body)} bytes, but a message of a queue can have"
            f" at most {most_bytes}: {shorten(split)}. Hand over where it is stored instead"
        )
