"""What is to be seen of durable jobs: a whole deployment, or one job as other runs are seen. It
reads the store and the queues and nothing else, so it works in any process, also while no
coordinator runs. A view is JSON on the wire."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from pyrite.durable.client.figures import members_of, metrics_of
from pyrite.durable.client.jobs import outcome
from pyrite.durable.client.overview import (
    JobRow,
    Moment,
    PeerRow,
    overview,
    progress,
    waits_for,
)
from pyrite.durable.client.shape import Shape
from pyrite.durable.client.submission import Catalog
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import JobNode, JobStatus
from pyrite.durable.protocol.workflow import Part, Workflow
from pyrite.durable.queues.queues import Queues, QueuesError, QueuesGone
from pyrite.durable.store.store import Store
from pyrite.errors import PyriteError
from pyrite.functions import shorten
from pyrite.job import JobStatus as RunStatus
from pyrite.watching.observing import failure_of, vertex_view
from pyrite.watching.views import (
    EdgeView,
    MemberView,
    RunState,
    RunView,
    StageView,
    VertexView,
)
from pyrite.whereabouts import name_from

MOST_COUNTED: Final = 50
"""The queues of so many open jobs are counted, the newest first: each takes a request or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartView:
    job: str
    task: str
    part: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerView:
    """`state` is one of those of the protocol, or `new` or `lost`; see `overview.PeerRow`."""

    name: str
    address: str
    state: str
    offer: int
    part: PartView | None
    since: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentView:
    """At `t` a peer came into a state."""

    t: float
    peer: str
    state: str
    part: PartView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """How many messages wait for a task of a job. A message is a batch of items. `edge` says where
    they come from and where they go to; the edges of a concurrent task have one queue."""

    job: str
    task: str
    edge: str
    messages: int
    in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentView:
    """`coordinators` has the one that leads first. The newest job is first. `history` has the
    recent states of the peers, the dead ones included, in the order of time. All times are in
    seconds since 1970."""

    seen: float
    coordinators: tuple[str, ...]
    peers: tuple[PeerView, ...]
    history: tuple[MomentView, ...]
    jobs: tuple[JobRow, ...]
    queues: tuple[QueueView, ...] = ()
    problem: str | None = None
    """Why the queues could not be read."""

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "jobs": [
                {**asdict(row), "parts": row.parts, "complete": row.complete} for row in self.jobs
            ],
        }


def deployment_view(
    store: Store, queues: Queues | None, *, problem: str | None = None
) -> DeploymentView:
    """All that is there now. Without queues, their lengths are left out; `problem` says why there
    are none."""
    found = overview(store)
    rows: list[QueueView] = []
    if queues is not None:
        open_jobs = [row.id for row in found.jobs if not row.has_ended]
        try:
            for job in open_jobs[:MOST_COUNTED]:
                rows += _lengths(store, queues, job)
        except QueuesError as error:
            problem = str(error)
    return DeploymentView(
        seen=time.time(),
        coordinators=found.coordinators,
        peers=tuple(map(_peer, found.peers)),
        history=tuple(map(_moment, found.moments)),
        jobs=found.jobs,
        queues=tuple(rows),
        problem=problem,
    )


def job_view(store: Store, id: str) -> RunView:
    """One job, also one that another process has submitted. Raises PyriteError if there is none of
    this id."""
    nodes = store.below(*(path(id) for path in (paths.catalog, paths.shape, paths.job)))
    if paths.catalog(id) not in nodes and paths.job(id) not in nodes:
        raise _unknown(id)
    # After the job: what an ended one has left does not change any more.
    more = store.below(paths.workflow(id), paths.tasks(id))
    node = JobNode.read(nodes[paths.job(id)]) if paths.job(id) in nodes else None
    catalog = Catalog.read(nodes[paths.catalog(id)]) if paths.catalog(id) in nodes else None
    shape = Shape.read(nodes[paths.shape(id)]) if paths.shape(id) in nodes else Shape()
    workflow = Workflow.read(more[paths.workflow(id)]) if paths.workflow(id) in more else None
    has_ended = node is not None and node.status.has_ended
    name = (catalog.name if catalog is not None else None) or name_from(
        [vertex.name for vertex in shape.vertices]
    )
    error = outcome(node, f"job '{name}'" if name else f"job {id}") if node and has_ended else None
    status = RunStatus.STARTING if node is None else STATUSES[node.status]
    is_failed = error is not None and status is RunStatus.FAILED
    failure = failure_of(error) if error is not None and is_failed else None
    metrics = metrics_of(store, id)
    return RunView(
        id=id,
        job_id=shape.job_id or id,
        name=name or id,
        kind="durable",
        state=STATES[status],
        submitted=catalog.submitted if catalog is not None else 0.0,
        ended=(node.ended or None) if node is not None and has_ended else None,
        seen=time.time(),
        host=shape.host,
        pid=shape.pid,
        vertices=tuple(
            vertex_view(
                each.name,
                metrics.get(each.name),
                status,
                failure,
                step=each.step,
                origin=each.origin,
            )
            for each in shape.vertices
        )
        or tuple(_tasks_as_vertices(workflow, status)),
        edges=tuple(
            EdgeView(source=edge.source, destination=edge.destination, label=edge.label)
            for edge in shape.edges
        )
        or tuple(_edges_of_tasks(workflow)),
        stages=tuple(_stages(id, shape, workflow, more, status)),
        members=() if has_ended else tuple(MemberView(**each) for each in members_of(store, id)),
        waits_for=None if has_ended else waits_for(store, id),
        failure=failure,
    )


def cancel_job(store: Store, id: str) -> None:
    """Asks the coordinator to cancel a job, and returns at once. If none runs now, the job is
    cancelled when one does. Raises PyriteError if the job has ended, or if there is none."""
    node = store.get(paths.job(id))
    if node is None and store.get(paths.catalog(id)) is None:
        raise _unknown(id)
    if node is not None and (status := JobNode.read(node).status).has_ended:
        raise PyriteError(f"job {id} has ended: it {HOW[status]}")
    store.create(paths.cancel(id))


STATUSES: Final[Mapping[JobStatus, RunStatus]] = {
    JobStatus.RUNNING: RunStatus.RUNNING,
    JobStatus.CANCELLING: RunStatus.RUNNING,
    JobStatus.FAILING: RunStatus.RUNNING,
    JobStatus.COMPLETE: RunStatus.COMPLETED,
    JobStatus.CANCELLED: RunStatus.CANCELLED,
    JobStatus.FAILED: RunStatus.FAILED,
}
STATES: Final[Mapping[RunStatus, RunState]] = {
    RunStatus.STARTING: "starting",
    RunStatus.RUNNING: "running",
    RunStatus.COMPLETED: "completed",
    RunStatus.FAILED: "failed",
    RunStatus.CANCELLED: "cancelled",
}
HOW: Final[Mapping[JobStatus, str]] = {
    JobStatus.COMPLETE: "completed",
    JobStatus.CANCELLED: "was cancelled",
    JobStatus.FAILED: "failed",
}


def _unknown(id: str) -> PyriteError:
    return PyriteError(f"there is no durable job {shorten(id)} here")


def _lengths(store: Store, queues: Queues, job: str) -> Iterator[QueueView]:
    try:
        found = queues.lengths(job)
    except QueuesGone:  # it has not begun, or it has ended meanwhile
        return
    text = store.get(paths.shape(job))
    labels: Mapping[str, str] = {} if text is None else Shape.read(text).queues
    for length in found:
        yield QueueView(
            job=job,
            task=length.task,
            edge=", ".join(labels.get(edge, edge) for edge in length.edges),
            messages=length.messages,
            in_flight=length.in_flight,
        )


def _peer(row: PeerRow) -> PeerView:
    return PeerView(
        name=row.name,
        address=row.address,
        state=row.state,
        offer=row.offer,
        part=_part(row.part),
        since=row.since,
    )


def _moment(moment: Moment) -> MomentView:
    return MomentView(t=moment.time, peer=moment.peer, state=moment.state, part=_part(moment.part))


def _part(part: Part | None) -> PartView | None:
    return None if part is None else PartView(job=part.job, task=part.task, part=part.member)


def _stages(
    id: str,
    shape: Shape,
    workflow: Workflow | None,
    nodes: Mapping[str, str],
    status: RunStatus,
) -> Iterator[StageView]:
    """The tasks, with their parts. Of a job that failed or was cancelled, it is not known any more
    how many parts were complete."""
    if workflow is not None:
        root = paths.tasks(id) + "/"
        names = [path.removeprefix(root) for path in nodes if path.startswith(root)]
        parts = [name for name in names if "/" not in name]
        for label, done, total in progress(workflow, id, parts):
            yield StageView(label=label, done=done, total=total)
    elif status is RunStatus.COMPLETED:
        for label, total in shape.tasks:
            yield StageView(label=label, done=total, total=total)


def _tasks_as_vertices(workflow: Workflow | None, status: RunStatus) -> Iterator[VertexView]:
    """Of a job whose DAG was too large to be kept."""
    for task in () if workflow is None else workflow.tasks:
        yield vertex_view(task.name, None, status, None, step=f"a {task.kind} task")


def _edges_of_tasks(workflow: Workflow | None) -> Iterator[EdgeView]:
    found: Sequence[tuple[str, str]] = (
        []
        if workflow is None
        else [(e.source, t.name) for t in workflow.tasks for e in t.edges if e.source is not None]
    )
    for source, destination in dict.fromkeys(found):
        yield EdgeView(source=source, destination=destination)
