"""What peers ask for. A request names its offer; one that is not the peer's current offer is
ignored, whenever it comes."""

from __future__ import annotations

from dataclasses import replace

from pyrite.durable.protocol.coordinator.draft import Draft
from pyrite.durable.protocol.coordinator.watches import RequestWatch
from pyrite.durable.protocol.states import (
    ACKING,
    ACTIVE,
    EVICTABLE,
    SEALING,
    WAITING,
)
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import Standing
from pyrite.durable.protocol.workflow import COMPLETION, Part


def ack(draft: Draft, peer: str, offer: int) -> None:
    standing = _current(draft, peer, offer)
    if standing is None or standing.state is not ACKING:
        return
    draft.move(peer, replace(standing, state=ACTIVE))
    draft.watches.append(RequestWatch("seal", peer, offer))
    draft.watches.append(RequestWatch("completion", peer, offer))


def seal(draft: Draft, peer: str, offer: int) -> None:
    """The seal rule. A repeated request has the same answer, which is already there."""
    standing = _current(draft, peer, offer)
    if standing is None or standing.state is not ACTIVE or standing.part is None:
        return
    job = draft.cluster.jobs[standing.part.job]
    if standing.part.task == COMPLETION and not job.is_running:
        return  # nothing of a job that was cancelled becomes visible; the peer is evicted
    seats = job.seats(standing.part)
    answer = SEALING if seats.may_seal(standing.state) else WAITING
    draft.move(peer, replace(standing, state=answer))
    draft.put(paths.exhaust(offer), answer.value)


def complete(draft: Draft, peer: str, offer: int) -> None:
    """The complete rule. The part stays open if somebody has come to it since the peer began to
    seal: that peer will seal again. The completion of a peer that died sealing counts if nobody is
    on the part."""
    standing = _current(draft, peer, offer)
    if standing is None or standing.part is None:
        return
    job = draft.cluster.jobs.get(standing.part.job)
    if job is None:
        return
    if standing.state is SEALING:
        draft.release(peer)
        if not job.seats(standing.part).busy:
            _complete(draft, standing.part)
        else:
            job.sealed_in_vain.add(standing.part)
            draft.create(paths.sealed_in_vain(standing.part))
    elif offer in job.died_sealing.get(standing.part, ()) and not len(job.seats(standing.part)):
        _complete(draft, standing.part)


def evict(draft: Draft, peer: str, offer: int) -> None:
    standing = _current(draft, peer, offer)
    if standing is not None and standing.state in EVICTABLE:
        draft.release(peer)


def _complete(draft: Draft, part: Part) -> None:
    job = draft.cluster.jobs[part.job]
    draft.create(paths.complete(part))
    draft.delete(paths.part(part), paths.sealed_in_vain(part))
    draft.delete(*(paths.completion(offer) for offer in job.died_sealing.get(part, ())))
    draft.cluster.complete(part)
    draft.jobs[part.job] = None
    draft.parts[part] = None


def _current(draft: Draft, peer: str, offer: int) -> Standing | None:
    standing = draft.cluster.standing(peer)
    return standing if standing is not None and standing.offer == offer else None
