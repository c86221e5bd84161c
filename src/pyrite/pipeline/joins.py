"""The nodes of a join: two sides by key, or one side that every processor holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyrite.dag import Edge
from pyrite.errors import InvalidDAG
from pyrite.pipeline.building import Options, check_stages, node_after
from pyrite.pipeline.edges import by_key
from pyrite.pipeline.nodes import Inlet, Node, upstream_of
from pyrite.processors.chain import StepSupplier
from pyrite.processors.joining import CoGroup, Side
from pyrite.processors.lookup import LookupJoin
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.pipeline.steps.point import Point


def sides_by_key(
    left: Point[Any],
    right: Point[Any],
    name: str,
    keys: tuple[Callable[[Any], Any], Callable[[Any], Any]],
    only_matches: tuple[bool, bool],
    fold: CoGroup,
    options: Options,
) -> Node:
    """A node that reads both stages, each partitioned by its key."""
    name = options.name or name
    check_stages(left, right, name=name)
    inlets = []
    for number, (stage, side) in enumerate(zip((left, right), ("left", "right"))):
        step = Side(keys[number], number, only_matches[number])
        before = node_after(
            [(stage, stage._local_shape())],
            f"{name}-{side}",
            StepSupplier(step),
            options.without_name(),
        )
        inlets.append(Inlet(before, by_key))
    return Node(
        name=name,
        given=options.name is not None,
        supplier=StepSupplier(fold),
        inlets=tuple(inlets),
        where=inlets[0].node.where,
        parallelism=inlets[0].node.parallelism,
    )


def broadcast_join(left: Point[Any], right: Point[Any], join: LookupJoin, options: Options) -> Node:
    """A node whose processors first read all of the right stage, then their items of the left. If
    both come from the same node, the left items that come meanwhile are buffered: otherwise they
    would block that node."""
    if join.how == "full":
        raise InvalidDAG(
            f"join() in {users_line()} has broadcast=True and how='full': each processor would "
            "emit all items of the other stage that it has no match for; use broadcast=False"
        )
    check_stages(left, right, name=options.name or "join")
    is_fork = not set(upstream_of([left.node])).isdisjoint(upstream_of([right.node]))

    def late(edge: Edge) -> Edge:
        edge = left._local_shape()(edge).priority(1)
        return edge.buffered() if is_fork else edge

    return node_after([(left, late), (right, _to_all_first)], "join", join, options)


def _to_all_first(edge: Edge) -> Edge:
    return edge.distributed().broadcast().priority(0)
