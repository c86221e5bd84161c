"""The nodes of joins and co-groups: two that take the keys of the two sides, and one that joins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyrite.errors import InvalidDAG
from pyrite.pipeline.building import Options, check_stages, node_after
from pyrite.pipeline.edges import afterwards, by_key, to_all
from pyrite.pipeline.nodes import Inlet, Node
from pyrite.processors.joins.hash_join import HashJoin
from pyrite.processors.joins.joining import CoGroup, Keyed, Side
from pyrite.processors.loops.chain import StepSupplier
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.pipeline.steps.point import Point


def hash_join(
    left: Point[Any], right: Point[Any], join: HashJoin, options: Options, *, broadcast: bool
) -> Node:
    """A node whose processors first read the right stage, then look up the items of the left. Both
    are partitioned by key; or each processor gets all of the right stage."""
    if broadcast and join.how == "full":
        raise InvalidDAG(
            f"join() in {users_line()} has broadcast=True and how='full': each processor would "
            "emit all items of the other stage that it has no match for; use broadcast=False"
        )
    steps = (
        Keyed(join.left, join.how in ("inner", "semi"), is_partitioned=not broadcast),
        Keyed(join.right, join.how != "full", is_partitioned=not broadcast),
    )
    late, early = keyed((left, right), "join", steps, options)
    shapes = (left._local_shape(), to_all) if broadcast else (by_key, by_key)
    inlets = Inlet(early, shapes[1]), Inlet(late, afterwards(shapes[0]))
    return _of_both("join", join, inlets, options)


def co_group(
    left: Point[Any],
    right: Point[Any],
    keys: tuple[Callable[[Any], Any], Callable[[Any], Any]],
    options: Options,
) -> Node:
    """A node that brings together the items of both stages that have the same key."""
    steps = [
        Side(key, matches_only=False, is_partitioned=True, side=side)
        for side, key in enumerate(keys)
    ]
    inlets = [Inlet(node, by_key) for node in keyed((left, right), "co_group", steps, options)]
    return _of_both("co_group", StepSupplier(CoGroup()), inlets, options)


def keyed(
    stages: tuple[Point[Any], Point[Any]], name: str, steps: Sequence[Keyed], options: Options
) -> list[Node]:
    """The nodes that take the keys of the two sides."""
    name = options.name or name
    check_stages(*stages, name=name)
    return [
        node_after(
            [(stage, stage._local_shape())],
            f"{name}-{side}",
            StepSupplier(step),
            options.without_name(),
        )
        for stage, step, side in zip(stages, steps, ("left", "right"))
    ]


def _of_both(name: str, supplier: Any, inlets: Sequence[Inlet], options: Options) -> Node:
    return Node(
        name=options.name or name,
        given=options.name is not None,
        supplier=supplier,
        inlets=tuple(inlets),
        where=inlets[0].node.where,
        parallelism=inlets[0].node.parallelism,
    )
