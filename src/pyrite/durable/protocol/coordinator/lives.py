"""Births and deaths of peers."""

from __future__ import annotations

from pyrite.durable.protocol.coordinator.draft import Draft
from pyrite.durable.protocol.coordinator.watches import PulseWatch
from pyrite.durable.protocol.states import (
    ACKING,
    DEAD,
    EVICTABLE,
    IDLE,
    REVOKED,
    SEALING,
)
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import NOW, Standing


def born(draft: Draft, peer: str) -> None:
    if draft.cluster.standing(peer) is not None:
        return
    draft.create(paths.status(peer))
    draft.move(peer, Standing(IDLE))
    draft.watches.append(PulseWatch(peer))


def death(draft: Draft, peer: str) -> None:
    standing = draft.cluster.standing(peer)
    if standing is None or standing.state is DEAD:
        return
    _fence_off(draft, peer, standing)
    draft.delete(paths.peer(peer), paths.cooldown(peer), paths.shutdown(peer))
    draft.move(peer, Standing(DEAD, standing.offer, standing.part, was=standing.state))


def revoke(draft: Draft, peer: str, offer: int) -> None:
    standing = draft.cluster.standing(peer)
    if standing is None or standing.state is not ACKING or standing.offer != offer:
        return
    _fence_off(draft, peer, standing)
    draft.move(peer, Standing(REVOKED, offer, standing.part))


def shutdown(draft: Draft, peer: str) -> None:
    """The peer gets no more offers. If it is sealing it completes first, else it leaves its part
    now."""
    standing = draft.cluster.standing(peer)
    if standing is None or standing.state is DEAD:
        draft.delete(paths.shutdown(peer))
        return
    if draft.cluster.peers[peer].is_leaving:
        return
    if standing.state in EVICTABLE:
        draft.release(peer)
    draft.cluster.leaves(peer)
    draft.put(paths.shutdown(peer), NOW)


def _fence_off(draft: Draft, peer: str, standing: Standing) -> None:
    """Without its status a peer commits nothing more, and its requests are over. But a sealing peer
    may have sealed, and may still say so."""
    draft.delete(paths.status(peer), paths.payload(peer))
    if standing.offer:
        draft.end_requests(standing.offer)
        if standing.state is not SEALING:
            draft.delete(paths.completion(standing.offer))
