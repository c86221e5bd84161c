"""Random walks of peers, clients and leaders on a real store: whoever dies when, all jobs end and
nothing is left. The seed of a walk is its number."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from pyrite.durable.coordinator.upkeep import WAITS_SECONDS
from pyrite.durable.protocol.states import LEGAL, PeerState
from pyrite.durable.protocol.tree import paths
from tests.durable.coordinator.places import Places
from tests.durable.coordinator.stage import Stage
from tests.durable.protocol.shapes import SHAPES


class Walk:
    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self.luck = Random(seed)

    def step(self) -> None:
        act = self.luck.choices(
            (self.peer_acts, self.leader_works, self.leader_dies, self.others_act),
            (10, 10, 1, 2),
        )[0]
        act()

    def peer_acts(self) -> None:
        for name in self.luck.sample(self.running(), k=min(2, len(self.running()))):
            self.stage.look(name)
            if self.stage.peers[name].is_running:
                self.stage.act(name)

    def leader_works(self) -> None:
        leader = self.stage.leader or self.stage.elect()
        for _ in range(self.luck.randint(1, 8)):
            leader.step()

    def leader_dies(self) -> None:
        if self.stage.leader is not None:
            self.stage.crash()

    def others_act(self) -> None:
        match self.luck.randint(0, 5):
            case 0:
                self.stage.born(f"p{len(self.stage.peers)}")
            case 1 if len(self.running()) > 1:
                self.stage.kill(self.luck.choice(self.running()))
            case 2 if len(self.running()) > 1:
                self.stage.expire(self.luck.choice(self.running()))
            case 3 if len(self.stage.workflows) < 3:
                shape = SHAPES[self.luck.choice(sorted(SHAPES))]
                self.stage.submit(f"job{len(self.stage.workflows)}", shape)
            case 4 if self.luck.random() < 0.3:
                self.stage.now += 2.0
            case 5 if self.luck.random() < 0.2 and self.stage.workflows:
                self.stage.store.create(paths.cancel(self.luck.choice([*self.stage.workflows])))

    def running(self) -> list[str]:
        return [name for name, peer in self.stage.peers.items() if peer.is_running]


@pytest.mark.parametrize("seed", range(12))
def test_all_jobs_end_whoever_dies(seed: int, places: Places) -> None:
    if places.is_slow and seed > 1:
        return
    stage = Stage(places.empty(), most_writes=3 if seed % 3 == 0 else 500)
    walk = Walk(stage, seed)
    stage.submit("job0", SHAPES["diamond"])
    stage.born("p0")
    for _ in range(150):
        walk.step()
    stage.born("last")
    stage.finish()
    stage.now += WAITS_SECONDS
    stage.coordinate()
    assert stage.left() == set()
    for name in stage.peers:
        states = [PeerState(state) for state in stage.states(name).split()]
        assert all(after in LEGAL[before] for before, after in pairwise(states))
    stage.close()
