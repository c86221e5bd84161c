"""The writes of a leader that no event decides: old entries of the log and old jobs are deleted,
and jobs say what they wait for. Each can be done at any time, or twice, so they are not in the
log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from pyrite.durable.protocol.coordinator.needs import waits_for
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.writes import Delete, Put, Write
from pyrite.durable.protocol.view.cluster import Cluster

BATCH: Final = 100
"""Nodes that are deleted in one transaction."""
KEPT_ENTRIES: Final = 100
"""Entries of the log that stay, for people who look for the reason of something."""
KEPT_JOBS: Final = 1_000
"""Ended jobs that can still be listed."""
WAITS_SECONDS: Final = 1.0


class DoneEntries:
    """The entries of the log up to the checkpoint.

    >>> done = DoneEntries(["/coordinator/ack-log/log-entry-0000000001"])
    >>> done.old()
    ()
    """

    def __init__(self, log: Iterable[str]) -> None:
        self._paths = deque(sorted(log, key=lambda path: path.rpartition("-")[2]))

    def add(self, path: str) -> None:
        self._paths.append(path)

    def old(self) -> tuple[Write, ...]:
        """Those that can go, once there are enough of them."""
        if len(self._paths) < KEPT_ENTRIES + BATCH:
            return ()
        return tuple(Delete(self._paths.popleft()) for _ in range(BATCH))


def forget_old_jobs(cluster: Cluster) -> tuple[Write, ...]:
    """The earliest of the ended jobs, once there are too many of them."""
    if len(cluster.ended) < KEPT_JOBS + BATCH:
        return ()
    old = sorted(cluster.ended, key=lambda name: cluster.ended[name].number)[:BATCH]
    for name in old:
        del cluster.ended[name]
    nodes = (paths.job, paths.catalog, paths.shape, paths.live, paths.metrics)
    return tuple(Delete(path(name)) for name in old for path in nodes)


class Waits:
    """What the jobs wait for, as it stands in the store. It changes with almost every event, so it
    is published only so often."""

    def __init__(self, nodes: Mapping[str, str]) -> None:
        self._published = {path.rpartition("/")[2]: text for path, text in nodes.items()}
        self.due: float | None = None

    def changed(self, *, now: float) -> None:
        if self.due is None:
            self.due = now + WAITS_SECONDS

    def writes(self, cluster: Cluster, *, now: float) -> tuple[Write, ...]:
        if self.due is None or now < self.due:
            return ()
        self.due = None
        sentences = {job: waits_for(cluster, job) for job in cluster.jobs}
        wanted = {job: text for job, text in sentences.items() if text is not None}
        over = [Delete(paths.waits(job)) for job in self._published if job not in wanted]
        new = [
            Put(paths.waits(job), text)
            for job, text in wanted.items()
            if self._published.get(job) != text
        ]
        self._published = wanted
        return (*over, *new)
