"""One event in, one entry of the log out."""

from __future__ import annotations

from typing import assert_never

from pyrite.durable.protocol.coordinator import jobs, lives, offers, requests
from pyrite.durable.protocol.coordinator.draft import Decision, Draft
from pyrite.durable.protocol.coordinator.events import (
    Ack,
    Born,
    Cancel,
    Collect,
    Complete,
    Death,
    Event,
    Evict,
    Fail,
    Offer,
    Plan,
    Reject,
    Revoke,
    Seal,
    Shutdown,
)
from pyrite.durable.protocol.view.cluster import Cluster


def decide(cluster: Cluster, event: Event, *, now: float = 0.0) -> Decision:
    """Decides on an event. The cluster changes in place, since a copy of 10,000 tasks for each
    event would cost too much. A leader whose entry the store refuses must stop: what it knows is
    not true any more. `now` is in seconds since 1970; nothing is decided by it, but people see when
    peers and jobs have changed."""
    draft = Draft(cluster, now=now)
    _handle(draft, event)
    _settle(draft)
    return draft.decision(event)


def _handle(draft: Draft, event: Event) -> None:
    match event:
        case Plan(job, workflow):
            jobs.plan(draft, job, workflow)
        case Reject(job, reason):
            jobs.reject(draft, job, reason)
        case Cancel(job):
            jobs.cancel(draft, job)
        case Born(peer):
            lives.born(draft, peer)
        case Death(peer):
            lives.death(draft, peer)
        case Shutdown(peer):
            lives.shutdown(draft, peer)
        case Revoke(peer, offer):
            lives.revoke(draft, peer, offer)
        case Ack(peer, offer):
            requests.ack(draft, peer, offer)
        case Seal(peer, offer):
            requests.seal(draft, peer, offer)
        case Complete(peer, offer):
            requests.complete(draft, peer, offer)
        case Fail(peer, offer, reason):
            jobs.fail(draft, peer, offer, reason)
        case Evict(peer, offer):
            requests.evict(draft, peer, offer)
        case Offer():
            offers.offer_all(draft)
        case Collect():
            offers.collect(draft)
        case _:
            assert_never(event)


def _settle(draft: Draft) -> None:
    """What holds after every event: nobody waits for nobody, and a job that is over has ended."""
    for part in list(draft.parts):
        job = draft.cluster.jobs.get(part.job)
        if job is not None and job.seats(part).all_wait:
            for peer in list(job.seats(part).waiting):
                draft.release(peer)
    for name in list(draft.jobs):
        jobs.end_if_over(draft, name)
