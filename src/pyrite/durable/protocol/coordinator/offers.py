"""The offer pass, and when the coordinator evicts a peer."""

from __future__ import annotations

from typing import Final

from pyrite.durable.protocol.coordinator.draft import Draft, Timer
from pyrite.durable.protocol.coordinator.events import Collect, Event, Evict, Offer
from pyrite.durable.protocol.coordinator.watches import RequestWatch
from pyrite.durable.protocol.states import ACKING
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import UNTOUCHED, Payload, Served, Standing
from pyrite.durable.protocol.view.cluster import Cluster
from pyrite.durable.protocol.view.job import Job
from pyrite.durable.protocol.workflow import Part

MOST_OFFERS: Final = 250
"""Offers in one entry of the log, so that it fits into a node. The pass goes on in the next."""
MOST_GARBAGE: Final = 500
"""Nodes of earlier states and of dead peers, before they are deleted in one entry."""


def wish(cluster: Cluster) -> Event | None:
    """What the coordinator wants to do by itself when no event waits, if anything. A loop of events
    and wishes never stops with work to do and a peer to do it."""
    for name in cluster.closing:
        return _evict_from(cluster, cluster.jobs[name])
    if len(cluster.idle) and cluster.is_hungry:
        return Offer()
    if not len(cluster.idle):
        for name in cluster.starved:
            return _evict_from(cluster, cluster.jobs[name])
    return Collect() if cluster.garbage_count >= MOST_GARBAGE else None


def offer_all(draft: Draft) -> None:
    """Gives parts to idle peers, who waited longest first: round robin over the jobs, and within a
    job by its own rule."""
    cluster = draft.cluster
    for _ in range(MOST_OFFERS):
        peer, job = cluster.idle.first(), cluster.next_job()
        if peer is None or job is None:
            return
        part = job.next_part()
        assert part is not None, "a hungry job has a part to offer"
        cluster.served = Served(cluster.served.offer + 1, job.node.number)
        draft.put(paths.JOB_LOG, cluster.served.text())
        _offer(draft, peer, part, cluster.served.offer)


def _offer(draft: Draft, peer: str, part: Part, number: int) -> None:
    draft.create(paths.part(part))
    for request in (paths.ack, paths.seal, paths.completion):
        draft.create(request(number), UNTOUCHED)
    draft.put(paths.payload(peer), Payload(number, part).text())
    draft.move(peer, Standing(ACKING, number, part))
    draft.watches.append(RequestWatch("ack", peer, number))
    draft.timers.append(Timer(peer, number))


def _evict_from(cluster: Cluster, job: Job) -> Evict:
    peer = job.evictable.first()
    assert peer is not None
    return Evict(peer, cluster.peers[peer].standing.offer)


def collect(draft: Draft) -> None:
    """Deletes the earlier states of peers, and dead peers."""
    for peer in draft.cluster.dead:
        draft.delete(paths.peer_states(peer))
    for peer, entry in draft.cluster.outdated:
        if peer not in draft.cluster.dead:
            draft.delete(paths.peer_state(peer, entry))
    draft.cluster.forget_garbage()
