"""Judges, before a job commits, whether its vertices had more bad records than they may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrite.bad_records import TooManyBadRecords, over_limit
from pyrite.engine.failure import Failed
from pyrite.engine.plan import Topology


def handles_errors(topology: Topology) -> bool:
    """Whether there are vertices that can have bad records and go on."""
    return any(vertex.handling is not None for vertex in topology.vertices)


def too_many_bad_records(
    topology: Topology, metrics: Mapping[str, Mapping[str, Any]]
) -> Failed | None:
    """The failure of a job whose metrics these are; None if no vertex is over its limit."""
    for vertex in topology.vertices:
        counts = metrics.get(vertex.name)
        if vertex.handling is not None and counts is not None:
            excess = over_limit(vertex.handling, counts, len(vertex.emitting))
            if excess is not None:
                error = TooManyBadRecords(f"vertex '{vertex.name}' could not process {excess}")
                return Failed(error, vertex=vertex.name)
    return None
