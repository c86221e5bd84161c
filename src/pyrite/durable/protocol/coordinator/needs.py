"""What a job waits for, as a sentence for its status."""

from __future__ import annotations

from pyrite.durable.protocol.view.cluster import Cluster


def waits_for(cluster: Cluster, job: str) -> str | None:
    """None if the job has ended, or if all its open parts have a peer."""
    known = cluster.jobs.get(job)
    if known is None or not known.is_running or not len(known.free):
        return None
    living, without = cluster.living_count, len(known.free)
    if not living:
        return (
            f"waits for peers: none is running, and {without} of {known.open_count} open parts"
            " need one; start some with `pyrite peers -n 4`"
        )
    return (
        f"needs more peers: {without} of {known.open_count} open parts wait for one of the"
        f" {living} peers; the job goes on, and is faster with more"
        " (`pyrite peers -n 4` starts four)"
    )
