"""What a member must do in ZooKeeper, given what is there now. Pure.

It is decided anew whenever something has changed, from what is there and never from what was done
before: so a reply that was lost, or nodes of an earlier session, need no rules of their own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyrite.cluster.elastic.roster import Node


@dataclass(frozen=True, slots=True)
class Todo:
    create: bool = False
    """Make a node, and look again."""
    announce: bool = False
    """Say that this member is ready."""
    delete: frozenset[Node] = frozenset()
    """What earlier sessions or incarnations left at this member's address."""
    displaced_by: Node | None = None
    """Another process has taken this member's address: nothing is left to do here."""


def todo(
    address: str,
    incarnation: str,
    own: Node | None,
    registered: Collection[Node],
    ready: Collection[Node],
    *,
    may_announce: Node | None,
) -> Todo:
    """`own` is the node that this member made in this session, if any; `may_announce` is the node
    with which it is connected to all that it must be."""
    here = [node for node in registered if node.address == address]
    others = [node for node in here if node.incarnation != incarnation]
    if own is not None:
        displacing = others if own not in here else [node for node in others if node > own]
        if displacing:
            return Todo(displaced_by=max(displacing))
    if own is None or own not in here:
        return Todo(create=True)
    left = frozenset(node for node in (*registered, *ready) if node.address == address)
    return Todo(announce=may_announce == own and own not in ready, delete=left - {own})
