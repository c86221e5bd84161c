"""Sentinels: which are written when a part seals, and what a peer does with one that it reads.

Several sentinels of one edge and one upstream part may be in the queue of a concurrent task,
because a peer that died while sealing may have written one. The first whose id is written to the
leader's node is the leader. The others are dropped, so one remains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from pyrite.durable.protocol.workflow import Part, Upstream, Workflow


class End(NamedTuple):
    """The end of one edge, as one upstream part announces it."""

    edge: str
    upstream: Upstream


@dataclass(frozen=True, slots=True)
class Sentinel:
    """`id` is None if it was written without one."""

    end: End
    id: str | None = None


class Requeue(Enum):
    NO = "dropped, or no sentinel at all"
    WITH_NEW_ID = "a new sentinel with an id takes its place"
    WITH_BACK_OFF = "the same sentinel in a new message, after a pause"


@dataclass(frozen=True, slots=True)
class Verdict:
    is_tail: bool
    requeue: Requeue


def judge(last: Sentinel | None, *, leader: str | None, only_leaders: bool) -> Verdict:
    """What the last message of a batch means. `last` is None if it is a segment. `leader` is the id
    in the node of the leader, read after this peer tried to write its own. `only_leaders` tells
    whether the queue, in-flight messages included, has nothing but leaders; see `TailCheck`.

    The leader goes back into the queue even at the tail, so that the other peers find the end too.

    >>> judge(None, leader=None, only_leaders=False)
    Verdict(is_tail=False, requeue=<Requeue.NO: 'dropped, or no sentinel at all'>)
    """
    if last is None:
        return Verdict(False, Requeue.NO)
    if last.id is None:
        return Verdict(False, Requeue.WITH_NEW_ID)
    if last.id == leader:
        return Verdict(only_leaders, Requeue.WITH_BACK_OFF)
    return Verdict(False, Requeue.NO)


def ends(workflow: Workflow, task: str) -> frozenset[End]:
    """All ends that must come before the input of a task is over."""
    return frozenset(
        End(edge.name, upstream)
        for edge in workflow.by_name[task].edges
        for upstream in workflow.upstream(edge)
    )


class SealTarget(NamedTuple):
    """Where one sentinel goes: the queue of an edge at a part, on one server."""

    part: Part
    edge: str
    server: int


def seal_targets(
    workflow: Workflow, sealed: Part, *, servers: int, home: int
) -> Iterator[SealTarget]:
    """What a part writes sentinels to when it seals: one in all for a concurrent task, on the
    server where this part commits (`home`); for a sequential task one to each member, on every
    server, because its readers do not count messages."""
    for reader, edge in workflow.egress(sealed.task):
        for member in range(reader.parts):
            part = Part(sealed.job, reader.name, member)
            for server in [home] if reader.kind == "concurrent" else range(servers):
                yield SealTarget(part, edge.name, server)
