"""A leader with a real store, and peers that do what they are told to do. The leader runs in the
process of the test and only when it is told to, so nothing depends on time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from pyrite.durable.coordinator.leader import Leader
from pyrite.durable.protocol.coordinator.log import MOST_WRITES
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import (
    FAILED,
    TOUCHED,
    JobNode,
    JobStatus,
    Standing,
    open_offer,
)
from pyrite.durable.protocol.workflow import Part, Workflow
from pyrite.durable.store.store import Store

ACK_SECONDS = 5.0
FENCE = "/fence"
WRITES = ("transact", "raise_epoch")


class Killed(BaseException):
    """The coordinator is killed. Nothing catches it, as nothing catches kill -9."""


class MortalStore:
    """A store whose process dies: before its n-th write, or right after the one before it."""

    def __init__(self, store: Store, *, before: int | None, after: int | None) -> None:
        self._store = store
        self._before = before
        self._after = after
        self._fence = ""
        self.is_behind_fence = True
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name in ("wake", "close"):
            return method
        if name == "changed":
            return self._changed

        def call(*arguments: Any) -> Any:
            if self.writes == self._after:
                raise Killed
            if name in WRITES:
                self.writes += 1
                if self.writes == self._before:
                    raise Killed
            return method(*arguments)

        return call

    def watch_fence(self, path: str) -> None:
        self._store.watch(path)
        self.is_behind_fence = False
        self._fence = path

    def _changed(self, timeout: float | None) -> str | None:
        if self.writes == self._after:
            raise Killed
        path = self._store.changed(timeout)
        self.is_behind_fence |= path == self._fence
        return path


class Peer:
    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.store = store
        self.is_running = True
        self.offer = 0
        self.part: Part | None = None
        self.mode = "free"


class Stage:
    """`before` and `after` say at which write the first leader dies. `close_queues` is what leaders
    are given; by default the names of the jobs are remembered."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        *,
        before: int | None = None,
        after: int | None = None,
        most_writes: int = MOST_WRITES,
        close_queues: Callable[[str, bool], object] | None = None,
        list_queues: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._open_store = open_store
        self._dies = (before, after)
        self._most_writes = most_writes
        self._close_queues = close_queues or (lambda job, _: self.closed.append(job))
        self._list_queues = list_queues
        self.store = open_store()
        self.now = 0.0
        self.closed: list[str] = []
        self.peers: dict[str, Peer] = {}
        self.workflows: dict[str, Workflow] = {}
        self.sealed: set[Part] = set()
        self.leader: Leader | None = None
        self.leaders = 0

    # The coordinator

    def coordinate(self) -> None:
        try:
            leader = self.leader or self.elect()
            self.hear_all(leader)
            while leader.step(5.0 if leader.closes_queues else 0.0):
                pass
        except Killed:
            self.crash()
            self.coordinate()

    def hear_all(self, leader: Leader) -> None:
        """What others have done, the leader has heard of afterwards: watches fire in order."""
        self._mortal.watch_fence(FENCE)
        self.store.set(FENCE, "") or self.store.create(FENCE)
        while not self._mortal.is_behind_fence:
            leader.step(10.0)

    def elect(self) -> Leader:
        before, after = self._dies if not self.leaders else (None, None)
        self._mortal = MortalStore(self._open_store(), before=before, after=after)
        self.leaders += 1
        self.leader = Leader(
            self._mortal,
            self._close_queues,
            self._list_queues,
            clock=lambda: self.now,
            ack_seconds=ACK_SECONDS,
            most_writes=self._most_writes,
        )
        self.leader.begin()
        return self.leader

    def crash(self) -> None:
        """The leader does nothing more, and its session is over."""
        assert self.leader is not None
        self.leader.stop()
        self._mortal.close()
        self.leader = None

    @property
    def write_count(self) -> int:
        return self._mortal.writes

    def time_out(self, peer: str) -> None:
        self.now += ACK_SECONDS

    # Clients

    def submit(self, job: str, workflow: Workflow) -> None:
        self.workflows[job] = workflow
        self.store.create(paths.catalog(job), "somewhere")
        self.store.create(paths.workflow(job), workflow.text())
        self.store.create(paths.plan(job))

    def status(self, job: str) -> JobStatus | None:
        text = self.store.get(paths.job(job))
        return JobNode.read(text).status if text else None

    # Peers

    def born(self, name: str) -> Peer:
        store = self._open_store()
        store.create_ephemeral(paths.pulse(name))
        store.create(paths.peer(name), "here")
        self.peers[name] = Peer(name, store)
        return self.peers[name]

    def expire(self, name: str) -> None:
        self.store.delete(paths.pulse(name))

    def kill(self, name: str) -> None:
        if self.peers[name].is_running:
            self.peers[name].is_running = False
            self.peers[name].store.close()

    def look(self, name: str) -> None:
        """A peer looks at its offer. If it is fenced off it stops."""
        peer = self.peers[name]
        if not self.may_commit(name):
            if self.states(name):
                self.kill(name)
            return
        payload = open_offer(
            peer.store.get(paths.payload(name)), peer.store.get(paths.cooldown(name))
        )
        if payload is None:
            peer.offer, peer.part, peer.mode = 0, None, "free"
        elif payload.offer != peer.offer:
            peer.offer, peer.part, peer.mode = payload.offer, payload.part, "offered"

    def act(self, name: str) -> bool:
        peer = self.peers[name]
        if peer.mode == "offered":
            peer.store.set(paths.ack(peer.offer), TOUCHED)
            peer.mode = "working"
        elif peer.mode == "working" and self._input_is_over(peer):
            peer.store.set(paths.seal(peer.offer), TOUCHED)
            peer.mode = "asked"
        elif peer.mode == "asked" and peer.store.get(paths.exhaust(peer.offer)) == "sealing":
            assert peer.part is not None
            self.sealed.add(peer.part)
            peer.mode = "sealed"
        elif peer.mode == "sealed":
            peer.store.set(paths.completion(peer.offer), TOUCHED)
            peer.mode = "completed"
        else:
            return False
        return True

    def fail(self, name: str, reason: str) -> None:
        peer = self.peers[name]
        peer.store.set(paths.completion(peer.offer), FAILED + reason)

    def mode(self, name: str) -> str:
        return self.peers[name].mode

    def may_commit(self, name: str) -> bool:
        return self.peers[name].store.get(paths.status(name)) is not None

    def states(self, name: str) -> str:
        found = self.store.below(paths.peer_states(name))
        return " ".join(Standing.read(found[path]).state.value for path in sorted(found)[1:])

    def _input_is_over(self, peer: Peer) -> bool:
        assert peer.part is not None
        workflow = self.workflows[peer.part.job]
        above = [
            Part(peer.part.job, *up)
            for edge in workflow.by_name[peer.part.task].edges
            if edge.source is not None
            for up in workflow.upstream(edge)
        ]
        return all(part in self.sealed for part in above)

    # The end

    def finish(self) -> None:
        """Whoever lives behaves, until all jobs have ended."""
        for _ in range(300):
            self.coordinate()
            running = [name for name, peer in self.peers.items() if peer.is_running]
            for name in running:
                self.look(name)
            moved = [name for name in running if self.peers[name].is_running and self.act(name)]
            ended = [s and s.has_ended for s in map(self.status, self.workflows)]
            if not moved and all(ended):
                return
        raise AssertionError(f"a stall: {self.store.below('/job', '/peer-state', '/waits')}")

    def left(self) -> set[str]:
        """The nodes that are still there, but for those that stay."""
        kept = {"job", "job-log", "catalog", "peer", "pulse", "status", "payload", "cooldown"}
        kept |= {"peer-state", "live"}
        found = {path for path, _ in self.store.below("/").items() if path.count("/") > 1}
        found -= {paths.CHECKPOINT, paths.EPOCH, paths.TO_CLOSE}
        return {path for path in found if path.split("/")[1] not in kept and "-log" not in path}

    def close(self) -> None:
        if self.leader is not None:
            self.crash()
        for name in self.peers:
            with suppress(Exception):
                self.kill(name)
        self.store.close()
