"""Point: where a stage is in the graph of its pipeline. The steps add nodes there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyrite.bad_records import FAIL
from pyrite.drawing.notebooks import DrawsItself
from pyrite.pipeline import edges
from pyrite.pipeline.building import Options, in_two_steps, node_after
from pyrite.pipeline.compiling import compiled
from pyrite.pipeline.nodes import Inlet, Node
from pyrite.processors.selecting import inspect

if TYPE_CHECKING:
    from pyrite.pipeline.pipeline import Pipeline
    from pyrite.pipeline.stage import Stage

T = TypeVar("T", covariant=True)


class Point(DrawsItself, Generic[T]):
    """The output of a node; of a split, one of its two branches."""

    __slots__ = ("_branch", "_in_order", "node", "pipeline")

    def __init__(
        self, pipeline: Pipeline, node: Node, *, branch: int = 0, in_order: bool = False
    ) -> None:
        self.pipeline = pipeline
        self.node = node
        self._branch = branch
        self._in_order = in_order

    def _inlet(self, shape: edges.Shape) -> Inlet:
        """What a node reads that reads this stage over an edge of that shape."""
        return Inlet(self.node, shape, self._branch)

    def _local_shape(self) -> edges.Shape:
        """The edge of a step that may run on any processor of the same member."""
        return edges.side_by_side if self._in_order else edges.local

    def _locally(self, name: str, supplier: Any, options: Options) -> Stage[Any]:
        return self._stage(self._local_node(name, supplier, options), in_order=self._in_order)

    def _local_node(self, name: str, supplier: Any, options: Options) -> Node:
        return node_after([(self, self._local_shape())], name, supplier, options)

    def _checked(self, name: str, key: Callable[[Any], Any] | None, options: Options) -> Point[Any]:
        """This stage, without the items for which `key` raises if the options say how to handle
        them. It is for a step that calls the function where the item is not known any more."""
        if key is None or options.on_error == FAIL:
            return self
        step = inspect(key)
        node = self._local_node(f"{options.name or name}-key", step, options.without_name())
        return self._inside(node, in_order=self._in_order)

    def _combined(
        self,
        name: str,
        first: Any,
        shape: edges.Shape,
        second: Any,
        options: Options,
        *,
        in_order: bool = False,
    ) -> Stage[Any]:
        node = in_two_steps(self, name, first, shape, second, options)
        return self._stage(node, in_order=in_order)

    def _stage(self, node: Node, *, branch: int = 0, in_order: bool = False) -> Stage[Any]:
        """What a step returns: a stage, which has to lead to a sink."""
        self.pipeline._add_end(node, branch)
        return self._inside(node, branch=branch, in_order=in_order)

    def _inside(self, node: Node, *, branch: int = 0, in_order: bool = False) -> Stage[Any]:
        """A stage that only a step itself sees. If the rest of the step is refused, the pipeline
        knows nothing of it."""
        stage: Any = type(self)(self.pipeline, node, branch=branch, in_order=in_order)
        return stage  # type: ignore[no-any-return]

    def _repr_html_(self) -> str:
        """What leads to it."""
        return compiled([self.node]).drawn_as(f"Stage '{self.node.name}'")

    def __repr__(self) -> str:
        return f"<Stage '{self.node.name}', {self.node.where}>"
