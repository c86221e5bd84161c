"""All that the coordinator knows. The nodes of the store are the truth; this is made from them, and
changes with the writes of each decision."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass

from pyrite.durable.protocol.states import DEAD, IDLE, LIVING, ON_A_PART, SEALING
from pyrite.durable.protocol.tree.nodes import JobNode, Served, Standing
from pyrite.durable.protocol.view.job import Job
from pyrite.durable.protocol.view.ranked import Ranked
from pyrite.durable.protocol.workflow import Part


@dataclass(slots=True)
class Peer:
    """`since` is the entry of the log that brought the peer into its state."""

    standing: Standing
    since: int
    is_leaving: bool = False
    """It was told to shut down and gets no more offers."""

    @property
    def can_work(self) -> bool:
        return self.standing.state in LIVING and not self.is_leaving


class Cluster:
    """`entry` is the number of the last entry of the log. `living_count` counts the peers that can
    work. `outdated` has the earlier states of peers, by peer and entry. `dead` has the dead peers,
    except those whose completion may still come. `closing` has the jobs that peers must leave,
    `starved` those that need an eviction."""

    def __init__(self) -> None:
        self.entry = 0
        self.living_count = 0
        self.served = Served()
        self.peers: dict[str, Peer] = {}
        self.idle: Ranked[str] = Ranked()
        self.dead: dict[str, None] = {}
        self.outdated: dict[tuple[str, int], None] = {}
        self.jobs: dict[str, Job] = {}
        self.ended: dict[str, JobNode] = {}
        self.closing: dict[str, None] = {}
        self.starved: dict[str, None] = {}
        self._hungry: list[tuple[int, str]] = []

    def standing(self, peer: str) -> Standing | None:
        known = self.peers.get(peer)
        return known.standing if known else None

    @property
    def is_hungry(self) -> bool:
        return bool(self._hungry)

    @property
    def garbage_count(self) -> int:
        return len(self.outdated) + len(self.dead)

    def next_job(self) -> Job | None:
        """The hungry job after the one that was served last, in the order of their plans."""
        if not self._hungry:
            return None
        after = bisect_right(self._hungry, self.served.job, key=lambda item: item[0])
        return self.jobs[self._hungry[after % len(self._hungry)][1]]

    # Changes

    def stand(self, name: str, standing: Standing, entry: int) -> None:
        """A peer comes into a state."""
        peer = self.peers.get(name)
        if peer is None:
            peer = self.peers[name] = Peer(standing, entry)
        else:
            self.living_count -= peer.can_work
            if peer.since != entry:
                self.outdated[name, peer.since] = None
            self._leave(name, peer.standing)
            peer.standing, peer.since = standing, entry
            peer.is_leaving &= standing.state is not DEAD
        self.living_count += peer.can_work
        self._sit(name, peer)

    def leaves(self, name: str) -> None:
        self.living_count -= self.peers[name].can_work
        self.peers[name].is_leaving = True
        self.idle.discard(name)

    def forget_garbage(self) -> None:
        for name in self.dead:
            del self.peers[name]
        self.dead.clear()
        self.outdated.clear()

    def add(self, job: Job) -> None:
        self.jobs[job.name] = job
        self.index(job)

    def end(self, job: Job, node: JobNode) -> None:
        for late in job.died_sealing.values():
            self.dead.update(dict.fromkeys(late.values()))
        del self.jobs[job.name]
        self.ended[job.name] = node
        self.closing.pop(job.name, None)
        self.starved.pop(job.name, None)
        self._set_hungry(job, False)

    def complete(self, part: Part) -> None:
        job = self.jobs[part.job]
        self.dead.update(dict.fromkeys(job.died_sealing.get(part, {}).values()))
        job.completed(part)
        self.index(job)

    def index(self, job: Job) -> None:
        """Brings the lists of jobs up to date after one has changed."""
        self._set_hungry(job, job.is_hungry)
        for names, belongs in ((self.closing, job.is_closing), (self.starved, job.is_starved)):
            if belongs:
                names[job.name] = None
            else:
                names.pop(job.name, None)

    def _leave(self, name: str, standing: Standing) -> None:
        self.idle.discard(name)
        if standing.part is not None and standing.state in ON_A_PART:
            job = self.jobs[standing.part.job]
            job.leave(name, standing)
            self.index(job)

    def _sit(self, name: str, peer: Peer) -> None:
        standing = peer.standing
        if standing.state is IDLE and not peer.is_leaving:
            self.idle.put(name, (peer.since,))
        elif standing.part is not None and standing.state in ON_A_PART:
            job = self.jobs[standing.part.job]
            job.sit(name, standing)
            self.index(job)
        elif standing.state is DEAD and not self._died_sealing(name, standing):
            self.dead[name] = None

    def _died_sealing(self, name: str, standing: Standing) -> bool:
        """Whether a completion of this dead peer can still count."""
        if standing.was is not SEALING or standing.part is None:
            return False
        job = self.jobs.get(standing.part.job)
        if job is None or standing.part in job.complete:
            return False
        job.died_sealing.setdefault(standing.part, {})[standing.offer] = name
        return True

    def _set_hungry(self, job: Job, is_hungry: bool) -> None:
        item = (job.node.number, job.name)
        at = bisect_right(self._hungry, item) - 1
        is_listed = at >= 0 and self._hungry[at] == item
        if is_hungry and not is_listed:
            insort(self._hungry, item)
        elif is_listed and not is_hungry:
            del self._hungry[at]
