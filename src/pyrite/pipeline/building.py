"""How a stage becomes another stage: the nodes that a step adds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from pyrite.bad_records import FAIL, ErrorPolicy
from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.pipeline.edges import Shape, side_by_side, to_one
from pyrite.pipeline.nodes import Inlet, Node, separate
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import Fold
from pyrite.retries import Retry
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.pipeline.steps.point import Point


class Options(NamedTuple):
    """What the user may say about each step."""

    name: str | None = None
    parallelism: int | None = None
    on_error: ErrorPolicy = FAIL
    retry: Retry | None = None

    def without_name(self) -> Options:
        """For a vertex that comes before the one that has the name. It is not tried again."""
        return self._replace(name=None, retry=None)


def node_after(
    inputs: Iterable[tuple[Point[Any], Shape]],
    name: str,
    supplier: Any,
    options: Options,
) -> Node:
    """A node that reads stages, each over an edge of that shape."""
    where = users_line()
    inputs = list(inputs)
    check_stages(*(stage for stage, _ in inputs), name=options.name or name)
    parallelism = -1 if options.parallelism is None else options.parallelism
    inlets = [stage._inlet(in_order(stage, shape, parallelism)) for stage, shape in inputs]
    return Node(
        name=options.name or name,
        given=options.name is not None,
        supplier=supplier,
        inlets=separate(inlets, where),
        where=where,
        parallelism=parallelism,
        on_error=options.on_error,
        retry=options.retry,
    )


def in_order(stage: Point[Any], shape: Shape, parallelism: int) -> Shape:
    """The shape, unless it would spread items that are in order over several processors: an
    isolated edge does that if its ends have different numbers of processors."""
    spreads = shape is side_by_side and stage.node.parallelism != parallelism
    return to_one if spreads and stage._in_order else shape


def in_two_steps(
    stage: Point[Any], name: str, first: Fold, shape: Shape, second: Fold, options: Options
) -> Node:
    """A node that combines what another one has made of the items where they are. The edge between
    the two has that shape. Only the first gets the items, so only its errors can be handled."""
    before = node_after(
        [(stage, side_by_side)],
        f"{options.name or name}-combine",
        StepSupplier(first),
        options.without_name(),
    )
    return Node(
        name=options.name or name,
        given=options.name is not None,
        supplier=StepSupplier(second),
        inlets=(Inlet(before, shape),),
        where=before.where,
        parallelism=before.parallelism,
    )


def check_stages(one: Point[Any], *others: Point[Any], name: str) -> None:
    """Raises InvalidDAG, with the user's line, unless all are stages of the same pipeline."""
    for other in others:
        if not isinstance(other, type(one)):
            raise InvalidDAG(f"'{name}' in {users_line()} needs a stage; got {shorten(other)}")
        if one.pipeline is not other.pipeline:
            raise InvalidDAG(
                f"'{name}' in {users_line()} mixes stages of two pipelines: '{one.node.name}', "
                f"added in {one.node.where}, and '{other.node.name}', added in "
                f"{other.node.where}; start both with read_from of the same pipeline"
            )
