"""A coordinator without a store: events in, standings out."""

from __future__ import annotations

from pyrite.durable.protocol.coordinator.decide import decide
from pyrite.durable.protocol.coordinator.draft import Decision
from pyrite.durable.protocol.coordinator.events import (
    Ack,
    Born,
    Complete,
    Event,
    Offer,
    Plan,
    Seal,
)
from pyrite.durable.protocol.states import IDLE
from pyrite.durable.protocol.view.cluster import Cluster
from pyrite.durable.protocol.workflow import Workflow


class Desk:
    def __init__(self, *peers: str, **jobs: Workflow) -> None:
        self.cluster = Cluster()
        for job, workflow in jobs.items():
            self.handle(Plan(job, workflow))
        for peer in peers:
            self.handle(Born(peer))

    def handle(self, event: Event) -> Decision:
        return decide(self.cluster, event)

    def offer(self) -> None:
        self.handle(Offer())

    def offer_of(self, peer: str) -> int:
        return self.cluster.peers[peer].standing.offer

    def state(self, peer: str) -> str:
        return self.cluster.peers[peer].standing.state.value

    def task(self, peer: str) -> str:
        """The task and member that the peer is on, like in0."""
        part = self.cluster.peers[peer].standing.part
        return f"{part.task}{part.member}" if part else IDLE.value

    def job(self, peer: str) -> str:
        part = self.cluster.peers[peer].standing.part
        return part.job if part else ""

    def ack(self, *peers: str) -> None:
        for peer in peers:
            self.handle(Ack(peer, self.offer_of(peer)))

    def seal(self, peer: str) -> str:
        self.handle(Seal(peer, self.offer_of(peer)))
        return self.state(peer)

    def complete(self, peer: str) -> None:
        """All that a peer does for its offer."""
        self.ack(peer)
        self.seal(peer)
        self.handle(Complete(peer, self.offer_of(peer)))
