"""All that a view says, as plain data that can be compared."""

from __future__ import annotations

from pyrite.durable.protocol.view.cluster import Cluster
from pyrite.durable.protocol.view.job import Job


def facts(cluster: Cluster) -> dict[str, object]:
    assert cluster.living_count == sum(peer.can_work for peer in cluster.peers.values())
    return {
        "entry": cluster.entry,
        "served": cluster.served,
        "peers": {n: (p.standing, p.since, p.is_leaving) for n, p in cluster.peers.items()},
        "living": cluster.living_count,
        "idle": cluster.idle.ranks(),
        "dead": set(cluster.dead),
        "outdated": set(cluster.outdated),
        "ended": cluster.ended,
        "closing": set(cluster.closing),
        "starved": set(cluster.starved),
        "next": cluster.next_job() and cluster.next_job().name,  # type: ignore[union-attr]
        "jobs": {name: _job(job) for name, job in cluster.jobs.items()},
    }


def _job(job: Job) -> dict[str, object]:
    seats = {part: job.seats(part) for part in job.workflow.parts_of(job.name)}
    return {
        "node": job.node,
        "complete": job.complete,
        "free": job.free.ranks(),
        "shared": job.shared.ranks(),
        "evictable": job.evictable.ranks(),
        "peers": job.peer_count,
        "late": job.died_sealing,
        "in vain": job.sealed_in_vain,
        "seats": {part: (s.busy, s.sealing, set(s.waiting)) for part, s in seats.items()},
    }
