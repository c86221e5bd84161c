"""Watches what is written to the store, and knows nothing of how it was decided. It has its own
table of legal transitions, written from the specification."""

from __future__ import annotations

from collections import defaultdict

from pyrite.durable.protocol.coordinator.log import Entry
from pyrite.durable.protocol.tree.nodes import JobNode, JobStatus, Payload, Standing
from pyrite.durable.protocol.tree.writes import Create, Put, Write
from pyrite.durable.protocol.workflow import Part, Workflow

LEGAL = {
    "idle": "acking dead",
    "acking": "active revoked idle dead",
    "active": "sealing waiting idle dead",
    "waiting": "idle sealing dead",
    "sealing": "idle dead",
    "revoked": "dead",
    "dead": "",
}
ON_A_PART = ("acking", "active", "waiting", "sealing")


class Witness:
    def __init__(self) -> None:
        self.workflows: dict[str, Workflow] = {}
        self.standings: dict[str, Standing] = {}
        self.history: dict[str, list[str]] = defaultdict(list)
        self.offers: dict[int, tuple[str, Part]] = {}
        self.complete: set[str] = set()
        self.statuses: dict[str, JobStatus] = {}
        self.sealed: set[Part] = set()
        """The parts whose sentinels somebody has written. Peers add to it."""

    def saw(self, write: Write) -> None:
        if not isinstance(write, Create | Put):
            return
        match write.path.split("/")[1:]:
            case ["peer-state", peer, _]:
                self._moved(peer, Standing.read(write.data))
            case ["payload", peer]:
                self._offered(peer, Payload.read(write.data))
            case ["task", _, name] if name.endswith(".complete"):
                self.complete.add(write.path)
            case ["job", job]:
                self._changed(job, JobNode.read(write.data).status)

    def entry_is_done(self, entry: Entry) -> None:
        """After the first execution of an entry: what must hold between two events."""
        paths = [write.path for write in entry.writes]
        assert len(paths) == len(set(paths)), f"a node is written twice: {paths}"
        for part in {s.part for s in self.standings.values() if s.part}:
            states = sorted(self._on(part))
            sequential = self.workflows[part.job].by_name[part.task].kind == "sequential"
            assert not sequential or len(states) <= 1, f"{states} on {part}"
            assert states.count("sealing") <= 1, f"{states} on {part}"
            assert set(states) != {"waiting"}, f"all wait on {part}"

    def _on(self, part: Part) -> list[str]:
        return [
            s.state.value
            for s in self.standings.values()
            if s.part == part and s.state.value in ON_A_PART
        ]

    def _moved(self, peer: str, after: Standing) -> None:
        before = self.standings.get(peer)
        if before == after:
            return
        old, new = before.state.value if before else "", after.state.value
        assert new in LEGAL[old].split() if old else new == "idle", f"{peer}: {old} -> {new}"
        if before and before.part and new in ON_A_PART and old != "idle":
            assert (before.offer, before.part) == (after.offer, after.part)
        if new == "sealing" and after.part:
            others = [s for p, s in self.standings.items() if p != peer and s.part == after.part]
            assert {s.state.value for s in others} <= {"waiting", "dead", "revoked"}
        self.standings[peer] = after
        self.history[peer].append(new)

    def _offered(self, peer: str, payload: Payload) -> None:
        offered = (peer, payload.part)
        assert self.offers.setdefault(payload.offer, offered) == offered, "an offer number twice"

    def _changed(self, job: str, status: JobStatus) -> None:
        before = self.statuses.get(job)
        assert before is None or not before.has_ended or before is status, f"{before} -> {status}"
        self.statuses[job] = status
        if status is JobStatus.COMPLETE and before is not status:
            for part in self.workflows[job].parts_of(job):
                assert part in self.sealed, f"{job} is complete, but {part} was never sealed"
                assert not set(self._on(part)) & {"acking", "active"}, f"somebody is on {part}"
