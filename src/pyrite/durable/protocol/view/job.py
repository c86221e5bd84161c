"""A job that has not ended, as the coordinator sees it: which parts can be offered, who is on them,
and who can be evicted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from pyrite.durable.protocol.states import EVICTABLE
from pyrite.durable.protocol.tree.nodes import JobNode, JobStatus, Standing
from pyrite.durable.protocol.view.ranked import Ranked
from pyrite.durable.protocol.view.seats import Seats
from pyrite.durable.protocol.workflow import COMPLETION, Part, Workflow

NOBODY = Seats()


class Job:
    """`free` has the open parts without a peer, the lowest phase first. `shared` has the open
    concurrent parts with peers, the one with fewest peers first. `evictable` has the peers that can
    be evicted, the one of the highest phase first. `died_sealing` has the offers whose peer died
    while it sealed an open part, with that peer.

    `sealed_in_vain` has the open parts that were sealed once while another peer came to them. Such
    a part takes no more peers while it is sealed again. Else two peers could go on for ever: one
    joins while the other seals, so the part stays open; then they change places."""

    def __init__(
        self, name: str, node: JobNode, workflow: Workflow, complete: Collection[Part] = ()
    ) -> None:
        self.name = name
        self.node = node
        self.workflow = workflow
        self.complete = set(complete)
        self._complete_parts = Counter(part.task for part in self.complete)
        self.free: Ranked[Part] = Ranked(
            (part, self._rank(part))
            for part in workflow.parts_of(name)
            if part not in self.complete
        )
        self.shared: Ranked[Part] = Ranked()
        self.evictable: Ranked[str] = Ranked()
        self.peer_count = 0
        self.died_sealing: dict[Part, dict[int, str]] = {}
        self.sealed_in_vain: set[Part] = set()
        self._seats: dict[Part, Seats] = {}

    @property
    def open_count(self) -> int:
        return self.workflow.part_count - len(self.complete)

    @property
    def is_running(self) -> bool:
        return self.node.status is JobStatus.RUNNING

    @property
    def is_completing(self) -> bool:
        """Whether its results may have become visible: its completion has begun to seal, even if
        the peer has died since."""
        part = Part(self.name, COMPLETION, 0)
        return bool(self.seats(part).sealing) or part in self.died_sealing

    @property
    def is_closing(self) -> bool:
        return not self.is_running and len(self.evictable) > 0

    @property
    def is_hungry(self) -> bool:
        """Whether an idle peer can be placed in this job."""
        return self.is_running and (len(self.free) > 0 or len(self.shared) > 0)

    @property
    def is_starved(self) -> bool:
        """Whether a part has no peer while a peer that can be evicted is in a higher phase. Without
        the part that peer may wait for ever."""
        free, last = self.free.first(), self.evictable.first()
        if not self.is_running or free is None or last is None:
            return False
        return self.phase(free) < -self.evictable.rank(last)[0]

    def phase(self, part: Part) -> int:
        return self.workflow.phases[part.task]

    def next_part(self) -> Part | None:
        """The offer rule within a job: a part without a peer, the lowest phase first. But peers
        help a concurrent part of a lower phase as long as all its input is there: a part of a later
        phase would hold its peer while it waits for what that part makes."""
        free, shared = self.free.first(), self.shared.first()
        if free is None:
            return shared
        if shared is not None and self.phase(shared) < self.phase(free) and self._is_fed(shared):
            return shared
        return free

    def _is_fed(self, part: Part) -> bool:
        """Whether all tasks that the part reads from are complete."""
        task = self.workflow.by_name[part.task]
        return all(self._is_complete(edge.source) for edge in task.edges if edge.source is not None)

    def _is_complete(self, task: str) -> bool:
        return self._complete_parts[task] == self.workflow.by_name[task].parts

    def seats(self, part: Part) -> Seats:
        return self._seats.get(part, NOBODY)

    def sit(self, peer: str, standing: Standing) -> None:
        assert standing.part is not None
        self.peer_count += 1
        self._seats.setdefault(standing.part, Seats()).sit(peer, standing.state)
        if standing.state in EVICTABLE:
            self.evictable.put(peer, (-self.phase(standing.part), -standing.offer))
        self._place(standing.part)

    def leave(self, peer: str, standing: Standing) -> None:
        assert standing.part is not None
        self.peer_count -= 1
        seats = self._seats[standing.part]
        seats.leave(peer, standing.state)
        if not len(seats):
            del self._seats[standing.part]
        self.evictable.discard(peer)
        self._place(standing.part)

    def completed(self, part: Part) -> None:
        if part not in self.complete:
            self._complete_parts[part.task] += 1
        self.complete.add(part)
        self.died_sealing.pop(part, None)
        self.sealed_in_vain.discard(part)
        self._place(part)

    def _place(self, part: Part) -> None:
        seats = self.seats(part)
        self.free.discard(part)
        self.shared.discard(part)
        if part in self.complete:
            return
        if not len(seats):
            self.free.put(part, self._rank(part))
        elif self._takes_more(part, seats):
            self.shared.put(part, (len(seats), *self._rank(part)))

    def _takes_more(self, part: Part, seats: Seats) -> bool:
        if self.workflow.by_name[part.task].kind == "sequential":
            return False
        return not (seats.sealing and part in self.sealed_in_vain)

    def _rank(self, part: Part) -> tuple[int, int, int]:
        return self.phase(part), self.workflow.positions[part.task], part.member
