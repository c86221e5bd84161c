"""What the vertices of a job have done so far, and the processes that do it, by the store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pyrite.durable.client.overview import PeerRow, peers_of
from pyrite.durable.client.shape import Shape
from pyrite.durable.parts.tally import Tallies, TaskShape, so_far
from pyrite.durable.protocol.tree import paths
from pyrite.durable.store.store import Store


def metrics_of(store: Store, job: str) -> dict[str, Any]:
    """By vertex. Once the job is complete they are exact. Before, they are what its peers have told
    so far, about once a second, and never fall."""
    found = store.below(paths.live(job), paths.shape(job))
    # After that: what peers have told is deleted once the exact metrics are there.
    text = store.get(paths.metrics(job))
    if text is not None:
        metrics: dict[str, Any] = json.loads(text)
        return metrics
    told = [each for tallies in _tallies(found, job).values() for each in tallies.told]
    names = store.children(paths.tasks(job))
    return so_far(told, _tasks(found.get(paths.shape(job)), job, names))


def members_of(store: Store, job: str) -> list[dict[str, Any]]:
    """The peers that work on a job now, and how much memory their processes take."""
    peers = peers_of(store, job)
    memory = {
        paths.peer_of_live(path): tallies.memory
        for path, tallies in sorted(_tallies(store.below(paths.live(job)), job).items())
    }
    return [{**_member(row), "memory_bytes": memory.get(row.name, 0)} for row in peers]


def _tallies(nodes: Mapping[str, str], job: str) -> dict[str, Tallies]:
    root = paths.live(job) + "/"
    return {path: Tallies.read(text) for path, text in nodes.items() if path.startswith(root)}


def _tasks(shape: str | None, job: str, names: list[str]) -> list[TaskShape]:
    """`names` are those of the nodes of the job's parts."""
    if shape is None:
        return []
    known = Shape.read(shape)
    complete: Counter[str] = Counter()
    for name in names:
        part, mark = paths.part_named(job, name)
        complete[part.task] += mark == "complete"
    vertices: dict[str, list[str]] = {}
    for vertex in known.vertices:
        vertices.setdefault(vertex.task, []).append(vertex.name)
    return [
        TaskShape(tuple(vertices[task]), parts, complete[task])
        for task, parts in known.tasks
        if task in vertices
    ]


def _member(row: PeerRow) -> dict[str, Any]:
    host, _, pid = row.address.rpartition(":")
    return {"member": row.name, "host": host, "pid": int(pid) if pid.isdecimal() else 0}
