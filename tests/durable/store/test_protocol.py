"""The stores carry the protocol: what a coordinator decides and writes, the next one reads."""

from __future__ import annotations

from itertools import count

import pytest

from pyrite.durable.protocol.coordinator.decide import decide
from pyrite.durable.protocol.coordinator.events import (
    Ack,
    Born,
    Collect,
    Complete,
    Death,
    Event,
    Plan,
    Seal,
)
from pyrite.durable.protocol.coordinator.log import Entry, after, repeated, transactions
from pyrite.durable.protocol.coordinator.offers import wish
from pyrite.durable.protocol.coordinator.takeover import TakeOver, take_over
from pyrite.durable.protocol.states import ACKING, ACTIVE, SEALING, PeerState
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import TOUCHED, JobNode, JobStatus
from pyrite.durable.protocol.view.cluster import Cluster
from pyrite.durable.protocol.workflow import Workflow
from pyrite.durable.store.store import EpochIsOver, Store
from tests.durable.protocol.shapes import CHAIN, DIAMOND
from tests.durable.protocol.views import facts
from tests.durable.store.places import Place


class Leader:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.epoch = store.raise_epoch()
        logged = [
            Entry.read(e) for p, e in store.below("/coordinator").items() if "/log-entry" in p
        ]
        for entry in after(int(store.get(paths.CHECKPOINT) or "0"), logged):
            for writes in repeated(entry):
                store.transact(self.epoch, writes)
        self.taken: TakeOver = take_over(store.below("/"))
        self.cluster: Cluster = self.taken.cluster

    def handle(self, event: Event, most: int | None = None) -> int:
        """Does at most so many transactions; how many there are."""
        decision = decide(self.cluster, event)
        steps = list(transactions(decision.entry, most=3)) if decision.entry else []
        for writes in steps[:most]:
            self.store.transact(self.epoch, writes)
        return len(steps)

    def next_event(self) -> Event | None:
        """What peers that behave do next."""
        kinds: dict[PeerState, type[Ack | Seal | Complete]]
        kinds = {ACKING: Ack, ACTIVE: Seal, SEALING: Complete}
        requests = (
            kinds[peer.standing.state](name, peer.standing.offer)
            for name, peer in self.cluster.peers.items()
            if peer.standing.state in kinds
        )
        return wish(self.cluster) or next(requests, None)


def submitted(store: Store, workflow: Workflow) -> None:
    store.create(paths.workflow("job"), workflow.text())
    store.create(paths.catalog("job"), "somewhere")
    store.create(paths.plan("job"))
    for peer in ("p0", "p1"):
        store.create_ephemeral(paths.pulse(peer))
        store.create(paths.peer(peer), "here")


@pytest.mark.parametrize("workflow", [CHAIN, DIAMOND], ids=["chain", "diamond"])
def test_a_job_runs_under_leaders_that_stop_in_the_middle_of_each_entry(
    place: Place, workflow: Workflow
) -> None:
    stores = [place.open(), place.open()]
    submitted(place.open(), workflow)
    leader = Leader(stores[0])
    todo: list[Event] = list(leader.taken.events)
    assert todo == [Plan("job", workflow), Born("p0"), Born("p1")]
    for turn in count():
        event = todo.pop(0) if todo else leader.next_event()
        if event is None:
            break
        leader.handle(event, most=1 + turn % 4)
        old, leader = leader, Leader(stores[turn % 2])
        assert facts(leader.cluster) == facts(old.cluster)
        with pytest.raises(EpochIsOver):
            old.store.transact(old.epoch, [])
    ended = JobNode.read(stores[0].get(paths.job("job")) or "")
    assert ended.status is JobStatus.COMPLETE
    leader.handle(Collect())
    for left in ("/task", "/ack", "/seal", "/completion", "/exhaust", "/plan"):
        assert stores[0].children(left) == []


def test_what_a_peer_has_set_and_a_pulse_that_is_gone_are_found_by_a_new_leader(
    place: Place, store: Store
) -> None:
    peers = place.open()
    submitted(peers, CHAIN)
    leader = Leader(store)
    for event in leader.taken.events:
        leader.handle(event)
    leader.handle(wish(leader.cluster) or Collect())
    assert peers.set(paths.ack(1), TOUCHED)
    peers.close()
    new = Leader(place.open())
    assert [event for event in new.taken.events if isinstance(event, Ack)] == [Ack("p0", 1)]
    watched = [watch.event(new.store.watch(watch.path)) for watch in new.taken.watches]
    assert {event for event in watched if isinstance(event, Death)} == {Death("p0"), Death("p1")}
