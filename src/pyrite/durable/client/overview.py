"""What the store says of jobs, tasks and peers, for people who look. It only reads, so it works
while no coordinator runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyrite.durable.client.submission import Catalog
from pyrite.durable.protocol.states import DEAD, ON_A_PART
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import JobNode, JobStatus, Standing
from pyrite.durable.protocol.workflow import Part, Workflow
from pyrite.durable.store.store import Store

NO_COORDINATOR: Final = (
    "waits for a coordinator: none is running; start one with `pyrite coordinator`"
)
PEERS: Final = ("/peer", "/peer-state")
ENDED: Final = {JobStatus.COMPLETE: "completed"}
STARTING: Final = "starting"
NEW: Final = "new"
LOST: Final = "lost"


@dataclass(frozen=True, slots=True)
class TaskRow:
    """`peers` is how many are on it."""

    name: str
    kind: str
    parts: int
    complete: int
    peers: int


@dataclass(frozen=True, slots=True)
class JobRow:
    """`tasks` is empty for a job that has ended: they are deleted then. `failure` is one line."""

    id: str
    name: str | None
    status: str
    has_ended: bool
    submitted: float | None
    ended: float | None = None
    """In seconds since 1970; None if it has not ended, or if that is not known."""
    tasks: tuple[TaskRow, ...] = ()
    waits_for: str | None = None
    failure: str | None = None

    @property
    def parts(self) -> int:
        return sum(task.parts for task in self.tasks)

    @property
    def complete(self) -> int:
        return sum(task.complete for task in self.tasks)


@dataclass(frozen=True, slots=True)
class PeerRow:
    """`state` is that of the protocol; or NEW, if no coordinator has seen the peer yet; or LOST, if
    it is gone and no coordinator has seen that yet. `offer` is 0 if it never had one."""

    name: str
    address: str
    state: str
    offer: int = 0
    part: Part | None = None
    since: float | None = None
    """When it came into the state, in seconds since 1970; None if that is not known."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A peer came into a state."""

    time: float
    peer: str
    state: str
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """`coordinators` has the one that leads first. The newest job is first. `moments` are the
    recent states of all peers, of the dead ones too, in the order of time: those that the store
    still has."""

    coordinators: tuple[str, ...]
    peers: tuple[PeerRow, ...]
    jobs: tuple[JobRow, ...]
    moments: tuple[Moment, ...] = ()


def overview(store: Store) -> Overview:
    """All that is there now."""
    leading = coordinators(store)
    nodes = store.below("/catalog", "/job", paths.WAITS, *PEERS)
    tasks = store.below("/workflow", "/task")  # after the jobs: those of an ended job are gone
    peers = _peers(nodes, store.children("/pulse"))
    jobs = _jobs(nodes, tasks, peers, has_leader=bool(leading))
    return Overview(leading, peers, jobs, _moments(nodes))


def peers_of(store: Store, job: str) -> tuple[PeerRow, ...]:
    """The peers that work on a job."""
    found = _peers(store.below(*PEERS), store.children("/pulse"))
    return tuple(
        row for row in found if row.part is not None and row.part.job == job and row.state != LOST
    )


def coordinators(store: Store) -> tuple[str, ...]:
    """The addresses of the coordinators; the first one leads."""
    proposals = store.below(paths.ELECTION)
    ordered = sorted(proposals, key=lambda path: path.rpartition("-")[2])
    return tuple(proposals[path] for path in ordered if path != paths.ELECTION)


def waits_for(store: Store, job: str) -> str | None:
    """Why a job does not go on, or not faster. None if all its parts have a peer."""
    node = store.get(paths.job(job))
    if node is not None and JobNode.read(node).status.has_ended:
        return None
    if not store.children(paths.ELECTION):
        return NO_COORDINATOR
    return store.get(paths.waits(job))


def progress(workflow: Workflow, job: str, names: Sequence[str]) -> list[tuple[str, int, int]]:
    """For each task its name, how many of its parts are complete, and how many it has. `names` are
    those of the nodes of the job's parts."""
    complete: Counter[str] = Counter()
    for name in names:
        part, mark = paths.part_named(job, name)
        complete[part.task] += mark == "complete"
    return [(task.name, complete[task.name], task.parts) for task in workflow.tasks]


def one_line(reason: str) -> str:
    """The sentence of a failure, without what follows it."""
    return next((line for line in reason.splitlines() if line.strip()), "")


def _peers(nodes: Mapping[str, str], living: Sequence[str]) -> tuple[PeerRow, ...]:
    last: dict[str, str] = {}
    for path in sorted(path for path in nodes if path.startswith("/peer-state/")):
        last[path.split("/")[2]] = nodes[path]
    rows: list[PeerRow] = []
    for path, address in nodes.items():
        root, _, name = path.rpartition("/")
        if root != "/peer":
            continue
        standing = Standing.read(last[name]) if name in last else None
        if standing is None:
            rows.append(PeerRow(name, address, NEW if name in living else LOST))
        elif standing.state is not DEAD:
            state = standing.state.value if name in living else LOST
            since = standing.since or None
            rows.append(PeerRow(name, address, state, standing.offer, _part(standing), since))
    return tuple(sorted(rows, key=lambda row: (row.address, row.name)))


def _moments(nodes: Mapping[str, str]) -> tuple[Moment, ...]:
    """The names of the nodes are in the order of the log, also where times are equal."""
    found = []
    for path, text in nodes.items():
        match path.split("/")[1:]:
            case ["peer-state", peer, name]:
                standing = Standing.read(text)
                if standing.since:
                    moment = Moment(standing.since, peer, standing.state.value, _part(standing))
                    found.append((name, peer, moment))
    return tuple(moment for _, _, moment in sorted(found, key=lambda each: each[:2]))


def _part(standing: Standing) -> Part | None:
    return standing.part if standing.state in ON_A_PART else None


def _jobs(
    nodes: Mapping[str, str],
    tasks: Mapping[str, str],
    peers: Sequence[PeerRow],
    *,
    has_leader: bool,
) -> tuple[JobRow, ...]:
    parts: dict[str, list[str]] = {}
    for path in tasks:
        match path.split("/")[1:]:
            case ["task", job, name]:
                parts.setdefault(job, []).append(name)
    busy = Counter(
        (row.part.job, row.part.task) for row in peers if row.part is not None and row.state != LOST
    )
    ids = {p.split("/")[2] for p in nodes if p.startswith(("/catalog/", "/job/"))}
    rows = []
    for id in ids:
        text = tasks.get(paths.workflow(id))
        rows.append(
            _job(
                id,
                nodes,
                () if text is None else _tasks(id, Workflow.read(text), parts.get(id, ()), busy),
                has_leader=has_leader,
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.submitted or 0.0, row.id), reverse=True))


def _job(
    id: str, nodes: Mapping[str, str], tasks: tuple[TaskRow, ...], *, has_leader: bool
) -> JobRow:
    catalog = Catalog.read(nodes[paths.catalog(id)]) if paths.catalog(id) in nodes else None
    node = JobNode.read(nodes[paths.job(id)]) if paths.job(id) in nodes else None
    has_ended = node is not None and node.status.has_ended
    waits = nodes.get(paths.waits(id)) if has_leader else NO_COORDINATOR
    return JobRow(
        id=id,
        name=catalog.name if catalog is not None else None,
        status=STARTING if node is None else ENDED.get(node.status, node.status.value),
        has_ended=has_ended,
        submitted=catalog.submitted if catalog is not None else None,
        ended=(node.ended or None) if node is not None else None,
        tasks=() if has_ended else tasks,
        waits_for=None if has_ended else waits,
        failure=(one_line(node.reason) or None) if node is not None else None,
    )


def _tasks(
    job: str, workflow: Workflow, names: Sequence[str], busy: Mapping[tuple[str, str], int]
) -> tuple[TaskRow, ...]:
    kinds = {task.name: task.kind for task in workflow.tasks}
    return tuple(
        TaskRow(name, kinds[name], parts, complete, busy.get((job, name), 0))
        for name, complete, parts in progress(workflow, job, names)
    )
