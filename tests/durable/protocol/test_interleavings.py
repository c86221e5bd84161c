"""Generated interleavings of clients, peers and coordinators, with deaths between any two steps.

After every step a witness has looked at each write: only legal transitions, one peer on a
sequential part, no offer number twice, no job complete before its parts are. At the end the faults
stop, and every job must end.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from pyrite.durable.protocol.coordinator.events import Born, Collect
from pyrite.durable.protocol.tree import paths
from tests.durable.protocol.shapes import SHAPES
from tests.durable.protocol.world import Peer, World

SHAPE = st.sampled_from(sorted(SHAPES))
WHICH = st.integers(0, 5)


class Interleavings(RuleBasedStateMachine):
    @initialize(shape=SHAPE, peers=st.integers(1, 4), seed=st.none() | st.integers(0, 99))
    def start(self, shape: str, peers: int, seed: int | None) -> None:
        self.world = World()
        self.seed = seed
        self.world.submit("job1", SHAPES[shape])
        for number in range(peers):
            self.world.born(f"p{number}")

    def jobs(self) -> list[str]:
        return list(self.world.witness.workflows)

    def peer(self, which: int) -> Peer:
        peers = list(self.world.peers.values())
        return peers[which % len(peers)]

    # What is ordinary

    @rule(which=WHICH)
    def a_peer_looks(self, which: int) -> None:
        if self.peer(which).is_running:
            self.world.look(self.peer(which).name)

    @rule(which=WHICH)
    def a_peer_acts(self, which: int) -> None:
        if self.peer(which).is_running:
            self.world.act(self.peer(which).name)

    @rule(rounds=st.integers(1, 3))
    def all_peers_go_on(self, rounds: int) -> None:
        for _ in range(rounds):
            self.world.coordinate()
            for name in list(self.world.healthy()):
                self.world.look(name)
                self.world.act(name)

    @rule(most=st.integers(1, 12))
    def the_coordinator_does_some_steps(self, most: int) -> None:
        self.world.coordinate(most)

    @rule()
    def the_coordinator_does_all(self) -> None:
        self.world.coordinate()
        self.world.check_view()
        self.world.check_replay(most=4)

    @rule(shape=SHAPE)
    def a_client_submits(self, shape: str) -> None:
        if len(self.jobs()) < 3:
            self.world.submit(f"job{len(self.jobs()) + 1}", SHAPES[shape])

    @rule()
    def a_peer_is_born(self) -> None:
        if len(self.world.peers) < 6:
            self.world.born(f"p{len(self.world.peers)}")

    # What is not

    @rule(after=st.integers(0, 12))
    def the_coordinator_dies(self, after: int) -> None:
        self.world.coordinate(after)
        self.world.crash()

    @rule(after=st.integers(0, 12))
    def the_coordinator_is_paused(self, after: int) -> None:
        self.world.coordinate(after)
        self.world.pause()

    @precondition(lambda self: self.world.old_leaders and self.world.leader)
    @rule()
    def a_paused_coordinator_wakes(self) -> None:
        self.world.old_leader_wakes()

    @rule(which=WHICH)
    def a_peer_dies(self, which: int) -> None:
        self.world.kill(self.peer(which).name)

    @rule(which=WHICH)
    def a_peer_loses_its_pulse_and_goes_on(self, which: int) -> None:
        self.world.expire(self.peer(which).name)

    @rule(which=WHICH)
    def a_peer_acks_too_late(self, which: int) -> None:
        self.world.time_out(self.peer(which).name)

    @precondition(lambda self: self.world.handled)
    @rule(which=st.integers(0, 30))
    def a_message_comes_again(self, which: int) -> None:
        event = self.world.handled[-1 - which % len(self.world.handled)]
        if isinstance(event, Born) and paths.peer(event.peer) not in self.world.nodes:
            return
        if not isinstance(event, Collect):
            self.world.deliver(event)

    @rule(which=WHICH)
    def a_client_cancels(self, which: int) -> None:
        job = self.jobs()[which % len(self.jobs())]
        if paths.cancel(job) not in self.world.nodes:
            self.world.cancel(job)

    @rule(which=WHICH)
    def a_client_shuts_a_peer_down(self, which: int) -> None:
        if paths.peer(self.peer(which).name) in self.world.nodes:
            self.world.ask_to_shut_down(self.peer(which).name)

    @rule(which=WHICH)
    def a_peer_fails_its_job(self, which: int) -> None:
        peer = self.peer(which)
        if peer.is_running and peer.mode == "working":
            self.world.fail(peer.name, "division by zero")

    @rule()
    def garbage_is_collected(self) -> None:
        self.world.collect()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.finish(self.seed)
            self.world.check_nothing_is_left()


class FewerFaults(Interleavings):
    """The same, but jobs are not cancelled and do not fail, so that more of them are completed."""

    a_client_cancels = None  # type: ignore[assignment]
    a_peer_fails_its_job = None  # type: ignore[assignment]
    a_client_shuts_a_peer_down = None  # type: ignore[assignment]
    a_peer_dies = None  # type: ignore[assignment]


SETTINGS = settings(stateful_step_count=50, deadline=None, report_multiple_bugs=False)
TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(SETTINGS, max_examples=50)
TestFewerFaults = FewerFaults.TestCase
TestFewerFaults.settings = settings(SETTINGS, max_examples=40)
