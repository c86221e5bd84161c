"""A decision under way: it changes what the coordinator knows, and collects the writes that make
the store agree."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyrite.durable.protocol.coordinator.events import Event, words
from pyrite.durable.protocol.coordinator.log import Entry
from pyrite.durable.protocol.coordinator.watches import Watch
from pyrite.durable.protocol.states import IDLE, ProtocolError, check_transition
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import Standing
from pyrite.durable.protocol.tree.writes import CloseQueues, Create, Delete, Put, Write
from pyrite.durable.protocol.view.cluster import Cluster
from pyrite.durable.protocol.workflow import Part


@dataclass(frozen=True, slots=True)
class Timer:
    """If the peer has not acked the offer in time, the offer is revoked."""

    peer: str
    offer: int


@dataclass(frozen=True, slots=True)
class Decision:
    """`entry` is None if the event changes nothing. The watches and timers are armed after the
    writes of the entry are done."""

    entry: Entry | None
    watches: tuple[Watch, ...] = ()
    timers: tuple[Timer, ...] = ()


class Draft:
    """`parts` and `jobs` are those that the decision has touched; the rules that hold after every
    event look only at these."""

    def __init__(self, cluster: Cluster, *, now: float = 0.0) -> None:
        self.cluster = cluster
        self.now = now
        self.number = cluster.entry + 1
        self.parts: dict[Part, None] = {}
        self.jobs: dict[str, None] = {}
        self.watches: list[Watch] = []
        self.timers: list[Timer] = []
        self._writes: dict[str, Write] = {}

    def decision(self, event: Event) -> Decision:
        if not self._writes:
            return Decision(None, tuple(self.watches), tuple(self.timers))
        self.cluster.entry = self.number
        entry = Entry(self.number, words(event), tuple(self._writes.values()))
        return Decision(entry, tuple(self.watches), tuple(self.timers))

    # Writes: each node once, the last write wins

    def create(self, path: str, data: str = "") -> None:
        self._writes[path] = Create(path, data)

    def put(self, path: str, data: str = "") -> None:
        self._writes[path] = Put(path, data)

    def delete(self, *deleted: str) -> None:
        for path in deleted:
            self._writes[path] = Delete(path)

    def close_queues(self, job: str) -> None:
        close = CloseQueues(job)
        self._writes[close.path] = close

    # Peers

    def move(self, peer: str, after: Standing) -> None:
        """A peer comes into a state."""
        before = self.cluster.standing(peer)
        if before is not None:
            check_transition(peer, before.state, after.state)
            self._touch(before.part)
        elif after.state is not IDLE:
            raise ProtocolError(f"peer {peer!r} is not known, so it cannot be {after.state.value}")
        after = replace(after, since=self.now)
        self.cluster.stand(peer, after, self.number)
        self._touch(after.part)
        self.put(paths.peer_state(peer, self.number), after.text())

    def release(self, peer: str) -> None:
        """A peer becomes idle, and its cooldown tells it so."""
        before = self.cluster.standing(peer)
        assert before is not None
        self.move(peer, Standing(IDLE))
        self.put(paths.cooldown(peer), str(before.offer))
        self.end_requests(before.offer)
        self.delete(paths.completion(before.offer))

    def end_requests(self, offer: int) -> None:
        """The requests of an offer end, but for its completion."""
        self.delete(paths.ack(offer), paths.seal(offer), paths.exhaust(offer))

    def _touch(self, part: Part | None) -> None:
        if part is not None:
            self.parts[part] = None
            self.jobs[part.job] = None
