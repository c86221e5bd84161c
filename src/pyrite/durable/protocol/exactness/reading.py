"""Which edges a sequential part may read, and which have ended. The part reads its own queues in
order, so no counting is needed: an edge has ended when the sentinel of every upstream part came on
every server."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from pyrite.durable.protocol.exactness.sentinels import End
from pyrite.durable.protocol.workflow import Edge, Task, Upstream, Workflow


class Came(NamedTuple):
    """A sentinel that a part has read. The record of its commit keeps these, so a second one from
    the same part and server changes nothing."""

    edge: str
    upstream: Upstream
    server: int


def has_ended(workflow: Workflow, edge: Edge, came: Set[Came], *, servers: int) -> bool:
    return all(
        Came(edge.name, upstream, server) in came
        for upstream in workflow.upstream(edge)
        for server in range(servers)
    )


def ended_by(
    workflow: Workflow, edge: Edge, came: Set[Came], end: End, server: int, *, servers: int
) -> bool:
    """Whether this sentinel ends its edge: the edge has not ended before, and has ended with it."""
    return not has_ended(workflow, edge, came, servers=servers) and has_ended(
        workflow, edge, came | {Came(end.edge, end.upstream, server)}, servers=servers
    )


def readable(workflow: Workflow, task: Task, came: Set[Came], *, servers: int) -> tuple[Edge, ...]:
    """The edges that the part reads now: of those that have not ended, the ones with the lowest
    rank. When there are none, the input is over."""
    left = [edge for edge in task.edges if not has_ended(workflow, edge, came, servers=servers)]
    rank = min((edge.rank for edge in left), default=0)
    return tuple(edge for edge in left if edge.rank == rank)
