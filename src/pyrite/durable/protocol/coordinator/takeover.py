"""What a new leader does after it has replayed the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyrite.durable.protocol.coordinator.draft import Timer
from pyrite.durable.protocol.coordinator.events import Born, Cancel, Event, Shutdown
from pyrite.durable.protocol.coordinator.watches import (
    PulseWatch,
    RequestWatch,
    Watch,
    planned,
)
from pyrite.durable.protocol.states import ACKING, DEAD, ON_A_PART
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import WANTED
from pyrite.durable.protocol.view.cluster import Cluster
from pyrite.durable.protocol.view.reading import read_cluster


@dataclass(frozen=True, slots=True)
class TakeOver:
    """The events come first, in their order. Then the watches and timers are armed. Then the loop
    goes on, and its first wish is an offer pass; see `offers.wish`."""

    cluster: Cluster
    events: tuple[Event, ...]
    watches: tuple[Watch, ...]
    timers: tuple[Timer, ...]


def take_over(nodes: Mapping[str, str]) -> TakeOver:
    """`nodes` has the data of each node by its path, after the replay."""
    cluster = read_cluster(nodes)
    requests = tuple(_requests(cluster))
    touched = [watch.event(nodes.get(watch.path)) for watch in requests]
    events = [event for event in touched if event is not None]
    events += _unhandled(cluster, nodes)
    pulses = [PulseWatch(n) for n, p in cluster.peers.items() if p.standing.state is not DEAD]
    timers = tuple(
        Timer(name, peer.standing.offer)
        for name, peer in cluster.peers.items()
        if peer.standing.state is ACKING
    )
    return TakeOver(cluster, tuple(events), (*requests, *pulses), timers)


def _requests(cluster: Cluster) -> Iterator[RequestWatch]:
    """Ack, seal and completion of each peer, in this order: the earlier one makes the later one
    legal."""
    for name, peer in cluster.peers.items():
        offer = peer.standing.offer
        if peer.standing.state in ON_A_PART:
            yield RequestWatch("ack", name, offer)
            yield RequestWatch("seal", name, offer)
            yield RequestWatch("completion", name, offer)
    for job in cluster.jobs.values():
        for late in job.died_sealing.values():
            for offer, name in late.items():
                yield RequestWatch("completion", name, offer)


def _unhandled(cluster: Cluster, nodes: Mapping[str, str]) -> list[Event]:
    """Plans, births, cancels and shutdowns that no entry of the log has handled."""
    plans: list[Event] = []
    births: list[Event] = []
    others: list[Event] = []
    for path, data in nodes.items():
        match path.split("/")[1:]:
            case ["plan", job]:
                plans.append(planned(job, nodes.get(paths.workflow(job))))
            case ["peer", peer] if peer not in cluster.peers:
                births.append(Born(peer))
            case ["cancel", job]:
                others.append(Cancel(job))
            case ["shutdown", peer] if data == WANTED:
                others.append(Shutdown(peer))
    return [*plans, *births, *others]
