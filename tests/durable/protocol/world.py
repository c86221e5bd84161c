"""A cluster in memory: the store, a leader with stand-bys, and peers. Everything moves in small
steps, one transaction or one action of a peer at a time, so a test can put a death between any
two."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from random import Random

from pyrite.durable.protocol.coordinator.decide import decide
from pyrite.durable.protocol.coordinator.draft import Decision, Timer
from pyrite.durable.protocol.coordinator.events import (
    Born,
    Cancel,
    Collect,
    Event,
    Revoke,
    Shutdown,
)
from pyrite.durable.protocol.coordinator.log import Entry, after, repeated, transactions
from pyrite.durable.protocol.coordinator.offers import wish
from pyrite.durable.protocol.coordinator.takeover import take_over
from pyrite.durable.protocol.coordinator.watches import Watch, planned
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import (
    FAILED,
    TOUCHED,
    WANTED,
    JobNode,
    JobStatus,
    open_offer,
)
from pyrite.durable.protocol.tree.writes import Write
from pyrite.durable.protocol.view.cluster import Cluster
from pyrite.durable.protocol.view.reading import read_cluster
from pyrite.durable.protocol.workflow import Part, Workflow
from tests.durable.protocol.store import Fenced, MemoryStore, apply
from tests.durable.protocol.views import facts
from tests.durable.protocol.witness import Witness


class Peer:
    """A peer does one offer at a time. It looks at its payload and cooldown only when it is told
    to, so it can act on an offer that it has lost."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_running = True
        self.offer = 0
        self.part: Part | None = None
        self.mode = "free"


class Leader:
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.cluster: Cluster | None = None
        self.inbox: deque[Event] = deque()
        self.todo: deque[tuple[Entry, tuple[Write, ...], bool]] = deque()
        self.to_arm: tuple[tuple[Watch, ...], tuple[Timer, ...]] = ((), ())
        self.watches: dict[str, Watch] = {}
        self.timers: list[Timer] = []
        self.is_armed = False
        self.collects = False


class World:
    """`crash_at` is the step of the coordinator before which it dies, once."""

    def __init__(self, *, crash_at: int | None = None) -> None:
        self.store = MemoryStore()
        self.witness = Witness()
        self.log: list[Entry] = []
        self.peers: dict[str, Peer] = {}
        self.leader: Leader | None = None
        self.old_leaders: list[Leader] = []
        self.handled: list[Event] = []
        self.steps = 0
        self.crash_at = crash_at

    @property
    def nodes(self) -> dict[str, str]:
        return self.store.nodes

    # Clients

    def submit(self, job: str, workflow: Workflow) -> None:
        self.witness.workflows[job] = workflow
        self.nodes[paths.catalog(job)] = "somewhere"
        self.nodes[paths.workflow(job)] = workflow.text()
        self.nodes[paths.plan(job)] = ""
        self._tell(planned(job, workflow.text()))

    def cancel(self, job: str) -> None:
        self._set(paths.cancel(job), "")
        self._tell(Cancel(job))

    def ask_to_shut_down(self, peer: str) -> None:
        self.nodes.setdefault(paths.shutdown(peer), WANTED)
        self._tell(Shutdown(peer))

    def status(self, job: str) -> JobStatus | None:
        text = self.nodes.get(paths.job(job))
        return JobNode.read(text).status if text else None

    # Leaders

    def crash(self) -> None:
        self.leader = None

    def pause(self) -> None:
        """The leader loses its office and does not know it yet."""
        if self.leader:
            self.old_leaders.append(self.leader)
            self.leader = None

    def old_leader_wakes(self) -> None:
        """It goes on until the store refuses a write."""
        leader, before = self.old_leaders.pop(), dict(self.nodes)
        with suppress(Fenced):
            while self._step(leader):
                pass
        assert self.nodes == before

    def coordinate(self, most: int = 10_000) -> bool:
        """Lets the coordinator do so many steps; whether it has nothing left to do."""
        for _ in range(most):
            self.steps += 1
            if self.steps == self.crash_at:
                self.crash()
            if self.leader is None:
                self._elect()
            elif not self._step(self.leader):
                return True
        assert most < 10_000, "the coordinator goes round in circles"
        return False

    def _elect(self) -> None:
        self.store.epoch += 1
        self.leader = Leader(self.store.epoch)
        checkpoint = int(self.nodes.get(paths.CHECKPOINT, "0"))
        logged = [Entry.read(text) for path, text in self.nodes.items() if "-log/log-entry" in path]
        for entry in after(checkpoint, logged):
            for writes in repeated(entry, most=1):
                self.leader.todo.append((entry, writes, False))

    def _step(self, leader: Leader) -> bool:
        if leader.todo:
            entry, writes, is_new = leader.todo.popleft()
            self.store.transact(leader.epoch, ())
            for write in writes:
                self.witness.saw(write)
                self.store.transact(leader.epoch, (write,))
            if is_new and entry.path == writes[0].path:
                self.log.append(entry)
            if not leader.todo and is_new:
                self.witness.entry_is_done(entry)
                self._arm(leader)
        elif leader.cluster is None:
            self.store.transact(leader.epoch, ())
            taken = take_over(self.nodes)
            leader.cluster = taken.cluster
            leader.inbox.extend(taken.events)
            leader.to_arm = (taken.watches, taken.timers)
        elif leader.inbox:
            self._decide(leader, leader.inbox.popleft())
        elif not leader.is_armed:
            self._arm(leader)
            leader.is_armed = True
        else:
            own = Collect() if leader.collects else wish(leader.cluster)
            leader.collects = False
            if own is None:
                return False
            self._decide(leader, own)
        return True

    def _decide(self, leader: Leader, event: Event) -> None:
        assert leader.cluster is not None
        if leader.is_armed:
            leader.to_arm = ((), ())
        decision: Decision = decide(leader.cluster, event)
        self.handled.append(event)
        watches, timers = leader.to_arm
        leader.to_arm = ((*watches, *decision.watches), (*timers, *decision.timers))
        if decision.entry is not None:
            for writes in transactions(decision.entry, most=1):
                leader.todo.append((decision.entry, writes, True))
            assert Entry.read(decision.entry.text()) == decision.entry
        elif leader.is_armed:
            self._arm(leader)

    def _arm(self, leader: Leader) -> None:
        if not leader.is_armed and leader.inbox:
            return  # a new leader arms its watches after it has handled what it found
        watches, timers = leader.to_arm
        leader.to_arm = ((), ())
        leader.timers += timers
        for watch in watches:
            leader.watches[watch.path] = watch
            self._fire(leader, watch)

    def _fire(self, leader: Leader, watch: Watch) -> None:
        event = watch.event(self.nodes.get(watch.path))
        if event is not None:
            leader.inbox.append(event)

    def _set(self, path: str, data: str | None) -> None:
        """Somebody else than the coordinator writes; the leader's watch fires."""
        if data is None:
            self.nodes.pop(path, None)
        else:
            self.nodes[path] = data
        if self.leader and path in self.leader.watches:
            self._fire(self.leader, self.leader.watches[path])

    def _tell(self, event: Event) -> None:
        """The leader sees a new child of /plan, /peer, /cancel or /shutdown."""
        if self.leader and self.leader.cluster:
            self.leader.inbox.append(event)

    def deliver(self, event: Event) -> None:
        """A message comes again, or late."""
        if self.leader:
            self.leader.inbox.append(event)

    def collect(self) -> None:
        if self.leader:
            self.leader.collects = True

    def time_out(self, peer: str) -> None:
        """The time of the peer's last offer is over."""
        offers = [t.offer for t in self.leader.timers if t.peer == peer] if self.leader else []
        if offers:
            self.deliver(Revoke(peer, offers[-1]))

    # Peers

    def born(self, name: str) -> Peer:
        self.peers[name] = Peer(name)
        self.nodes[paths.pulse(name)] = ""
        self.nodes[paths.peer(name)] = "here"
        self._tell(Born(name))
        return self.peers[name]

    def expire(self, name: str) -> None:
        """The peer loses its pulse, and may go on for a while."""
        if paths.pulse(name) in self.nodes:
            self._set(paths.pulse(name), None)

    def kill(self, name: str) -> None:
        self.peers[name].is_running = False
        self.expire(name)

    def look(self, name: str) -> None:
        """A peer looks at its offer. If it is fenced off it stops."""
        peer = self.peers[name]
        if paths.status(name) not in self.nodes:
            if name in self.witness.standings:
                self.kill(name)
            return
        payload = open_offer(
            self.nodes.get(paths.payload(name)), self.nodes.get(paths.cooldown(name))
        )
        if payload is None:
            peer.offer, peer.part, peer.mode = 0, None, "free"
            if self.nodes.get(paths.shutdown(name)) not in (None, WANTED):
                self.kill(name)
        elif payload.offer != peer.offer:
            peer.offer, peer.part, peer.mode = payload.offer, payload.part, "offered"

    def act(self, name: str) -> bool:
        """The next thing that a peer does for the offer that it knows of; whether there is one."""
        peer = self.peers[name]
        if peer.mode == "offered":
            self.touch(peer, paths.ack(peer.offer))
            peer.mode = "working"
        elif peer.mode == "working" and self._input_is_over(peer):
            self.touch(peer, paths.seal(peer.offer))
            peer.mode = "asked"
        elif peer.mode == "asked" and self.nodes.get(paths.exhaust(peer.offer)) == "sealing":
            assert peer.part is not None
            self.witness.sealed.add(peer.part)
            peer.mode = "sealed"
        elif peer.mode == "sealed":
            self.touch(peer, paths.completion(peer.offer))
            peer.mode = "completed"
        else:
            return False
        return True

    def fail(self, name: str, reason: str) -> None:
        self.touch(self.peers[name], paths.completion(self.peers[name].offer), FAILED + reason)

    def touch(self, peer: Peer, path: str, data: str = TOUCHED) -> None:
        if path in self.nodes:
            self._set(path, data)

    def mode(self, name: str) -> str:
        return self.peers[name].mode

    def may_commit(self, name: str) -> bool:
        return paths.status(name) in self.nodes

    def states(self, name: str) -> str:
        return " ".join(self.witness.history[name])

    def _input_is_over(self, peer: Peer) -> bool:
        """The sentinels of all parts above have come. This is what makes a missing peer upstream a
        stall downstream."""
        assert peer.part is not None
        workflow = self.witness.workflows[peer.part.job]
        above = [
            Part(peer.part.job, *up)
            for edge in workflow.by_name[peer.part.task].edges
            if edge.source is not None
            for up in workflow.upstream(edge)
        ]
        return all(part in self.witness.sealed for part in above)

    def healthy(self) -> Iterator[str]:
        for name, peer in self.peers.items():
            may_work = paths.status(name) in self.nodes or name not in self.witness.standings
            if peer.is_running and may_work and paths.pulse(name) in self.nodes:
                yield name

    # The end

    def finish(self, seed: int | None = None) -> None:
        """No more faults: whoever lives behaves. All jobs must end. Without a seed all peers go in
        step, with one they are of different speed."""
        luck = Random(seed)
        for _ in range(400):
            if not any(True for _ in self.healthy()):
                self.born(f"late{len(self.peers)}")
            self.coordinate()
            running = [name for name, peer in self.peers.items() if peer.is_running]
            if seed is not None:
                running = luck.sample(running, luck.randint(0, len(running)))
            for name in running:
                self.look(name)
            moved = [name for name in running if self.peers[name].is_running and self.act(name)]
            if not moved and self._is_over():
                break
        else:
            raise AssertionError(f"a stall: {facts(read_cluster(self.nodes))}")
        # Also those that were fenced off and have not noticed it: they stop, and leave nothing.
        for name in [name for name, peer in self.peers.items() if peer.is_running]:
            self.look(name)
        self.coordinate()
        self.check_view()
        self.check_replay()

    def _is_over(self) -> bool:
        ended = (status and status.has_ended for status in map(self.status, self.witness.workflows))
        return all(ended) and not any("/plan/" in path for path in self.nodes)

    def check_nothing_is_left(self) -> None:
        """But the statuses of jobs, living peers, the log and its counters."""
        self.collect()
        self.coordinate()
        kept = {"job", "job-log", "catalog", "peer", "pulse", "status", "payload", "cooldown"}
        kept |= {"peer-state", "live"}
        left = [path for path in self.nodes if path.split("/")[1] not in {*kept, "coordinator"}]
        left += [path for path in self.nodes if path.startswith("/peer-state/")][len(self.peers) :]
        assert not left, left

    def check_view(self) -> None:
        """What the leader knows is what a new one would read."""
        if self.leader and self.leader.cluster and not self.leader.todo:
            known, read = facts(self.leader.cluster), facts(read_cluster(self.nodes))
            assert not {key: (known[key], read[key]) for key in known if known[key] != read[key]}

    def check_replay(self, most: int = 12) -> None:
        """To replay any suffix of the log changes nothing."""
        if self.leader is None or self.leader.todo:
            return
        for start in range(max(0, len(self.log) - most), len(self.log)):
            nodes = dict(self.nodes)
            for entry in self.log[start:]:
                for write in entry.writes:
                    apply(nodes, write)
            assert nodes == self.nodes, f"replay from {self.log[start].event}"
