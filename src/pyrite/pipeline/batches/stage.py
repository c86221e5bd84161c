"""BatchStage: batches of rows at one point of a pipeline, and the columnar steps that can
follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pyrite.bad_records import FAIL, ErrorPolicy
from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.pipeline import edges
from pyrite.pipeline.batches.grouped import BatchGrouped
from pyrite.pipeline.batches.joins import joined
from pyrite.pipeline.building import Options, node_after
from pyrite.pipeline.nodes import Node
from pyrite.pipeline.stage import Stage
from pyrite.pipeline.steps.ends import Ends
from pyrite.pipeline.steps.point import Point
from pyrite.processors.columns.arrow_types import ArrowExpression
from pyrite.processors.columns.doors import rows
from pyrite.processors.columns.mapping import FrameFormat, map_batches
from pyrite.processors.columns.selecting import filter_batches, select_columns
from pyrite.processors.columns.sorting import sort_batches
from pyrite.processors.transforms import noop
from pyrite.retries import Retry
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.columns.joining.joining import JoinHow

P = ParamSpec("P")
U = TypeVar("U")


class BatchStage(Ends[Any]):
    """Batches of rows at one point of a pipeline. `read_from(p.read_batches(...))` and
    `stage.batches(schema)` make one. It is immutable: each method returns another stage.

    All steps take `name=`, the name of the vertex, and `parallelism=`, its processors per member.
    """

    __slots__ = ()

    @classmethod
    def _after(cls, point: Point[Any], node: Node, *, in_order: bool = False) -> BatchStage:
        point.pipeline._add_end(node, 0)
        return cls(point.pipeline, node, in_order=in_order)

    def map_batches(
        self,
        fn: Callable[[Any], Any],
        format: FrameFormat = "arrow",
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
        retry: Retry | None = None,
    ) -> BatchStage:
        """Emits `fn(frame)` for each batch. The frame is a `pyarrow.RecordBatch`, or a DataFrame of
        pandas or Polars, as `format` says. `fn` returns a frame of the same kind, a
        `pyarrow.Table`, or None for nothing.

        With `on_error`, a batch for which `fn` raises is halved until the rows are found for which
        it raises; these are the bad records.

        >>> from pyrite import Pipeline
        >>> numbers = Pipeline().read_from([1, 2, 3]).batches({"n": "int64"})
        >>> numbers.map_batches(lambda batch: batch.slice(2)).rows().collect()
        [{'n': 3}]
        """
        options = Options(name, parallelism, on_error, retry)
        return self._next("map_batches", map_batches(fn, format), options)

    def filter(
        self,
        expression: ArrowExpression,
        *,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> BatchStage:
        """The rows for which an expression of pyarrow is true.

        >>> import pyarrow.compute as pc
        >>> from pyrite import Pipeline
        >>> numbers = Pipeline().read_from([1, 2, 3]).batches({"n": "int64"})
        >>> numbers.filter(pc.field("n") > 1).rows().collect()
        [{'n': 2}, {'n': 3}]
        """
        return self._next("filter", filter_batches(expression), Options(name, parallelism))

    def select(
        self, *columns: str, name: str | None = None, parallelism: int | None = None
    ) -> BatchStage:
        """Only these columns, in this order.

        >>> from pyrite import Pipeline
        >>> pairs = Pipeline().read_from([(1, "a")]).batches({"n": "int64", "word": "string"})
        >>> pairs.select("word").rows().collect()
        [{'word': 'a'}]
        """
        return self._next("select", select_columns(columns), Options(name, parallelism))

    def group_by(self, *columns: str) -> BatchGrouped:
        """Groups of the rows whose values in these columns are the same. Null is a value like any
        other. Without columns all rows are one group.

        >>> from pyrite import Pipeline
        >>> sales = Pipeline().read_from([("a", 1), ("b", 2), ("a", 3)])
        >>> batches = sales.batches({"shop": "string", "price": "int64"})
        >>> totals = batches.group_by("shop").aggregate(total=("price", "sum"))
        >>> totals.sort("shop").rows().collect()
        [{'shop': 'a', 'total': 4}, {'shop': 'b', 'total': 2}]
        """
        return BatchGrouped(self, columns)

    def join(
        self,
        other: BatchStage,
        on: str | Sequence[str] | None = None,
        *,
        left_on: str | Sequence[str] | None = None,
        right_on: str | Sequence[str] | None = None,
        how: JoinHow = "inner",
        broadcast: bool = False,
        name: str | None = None,
        parallelism: int | None = None,
    ) -> BatchStage:
        """Joins the rows of this stage (left) with those of the other (right) whose columns `on`
        are equal; or the columns `left_on` and `right_on`. `how` is inner, left, right, full, semi
        or anti. Null matches nothing. A row has the columns of this stage, then those of the other
        without its keys; a name that both have gets `_right` at the end. The other stage should be
        the smaller one: it is held. With `broadcast=True` each processor gets all of it.

        >>> from pyrite import Pipeline
        >>> pipe = Pipeline()
        >>> people = pipe.read_from([(1, "Ada"), (2, "Bo")]).batches({"id": int, "name": str})
        >>> visits = pipe.read_from([(2, "Mo")]).batches({"id": int, "day": str})
        >>> visits.join(people, on="id").rows().collect()
        [{'id': 2, 'day': 'Mo', 'name': 'Bo'}]
        """
        node = joined(
            self,
            _checked_batches(other),
            on=on,
            left_on=left_on,
            right_on=right_on,
            how=how,
            broadcast=broadcast,
            options=Options(name, parallelism),
        )
        return self._after(self, node)

    def union(
        self, *others: BatchStage, name: str | None = None, parallelism: int | None = None
    ) -> BatchStage:
        """The rows of all these stages, which have the same columns.

        >>> from pyrite import Pipeline
        >>> pipe = Pipeline()
        >>> one, two = (pipe.read_from([n]).batches({"n": "int64"}) for n in (1, 2))
        >>> one.union(two).sort("n").rows().collect()
        [{'n': 1}, {'n': 2}]
        """
        inputs = [(stage, edges.local) for stage in (self, *map(_checked_batches, others))]
        node = node_after(inputs, "union", noop(), Options(name, parallelism))
        return self._after(self, node)

    def sort(
        self,
        *columns: str,
        descending: bool | Sequence[bool] = False,
        name: str | None = None,
    ) -> BatchStage:
        """All rows in the order of these columns; nulls last. One processor sorts them all.

        >>> from pyrite import Pipeline
        >>> numbers = Pipeline().read_from([2, 3, 1]).batches({"n": "int64"})
        >>> numbers.sort("n", descending=True).rows().collect()
        [{'n': 3}, {'n': 2}, {'n': 1}]
        """
        step = sort_batches(columns, descending)
        node = node_after([(self, edges.all_to_one)], "sort", step, Options(name))
        return self._after(self, node, in_order=True)

    def rows(
        self, *, name: str | None = None, parallelism: int | None = None
    ) -> Stage[dict[str, Any]]:
        """The rows of all batches as dicts, with the columns in their order.

        >>> from pyrite import Pipeline
        >>> Pipeline().read_from(["a"]).batches({"word": "string"}).rows().collect()
        [{'word': 'a'}]
        """
        node = self._local_node("rows", rows(), Options(name, parallelism))
        self.pipeline._add_end(node, 0)
        return Stage(self.pipeline, node, in_order=self._in_order)

    def pipe(
        self, fn: Callable[Concatenate[BatchStage, P], U], *args: P.args, **kwargs: P.kwargs
    ) -> U:
        """`fn(stage, *args)`: for steps of one's own, in the middle of a chain.

        >>> from pyrite import Pipeline
        >>> def first(stage, column):
        ...     return stage.select(column)
        >>> Pipeline().read_from(["a"]).batches({"word": "string"}).pipe(first, "word")
        <BatchStage 'select', <doctest pyrite.pipeline.batches.stage.BatchStage.pipe[1]> line 2>
        """
        return fn(self, *args, **kwargs)

    def _next(self, name: str, supplier: Any, options: Options) -> BatchStage:
        return self._after(self, self._local_node(name, supplier, options), in_order=self._in_order)

    def __getattr__(self, name: str) -> Any:
        hint = ""
        if not name.startswith("_") and hasattr(Stage, name):
            hint = f"; that is for items: call .rows() first, as in stage.rows().{name}(...)"
        raise AttributeError(f"a stage of batches has no method {name}(){hint}")

    def __repr__(self) -> str:
        return f"<BatchStage '{self.node.name}', {self.node.where}>"


def _checked_batches(stage: Any) -> BatchStage:
    if isinstance(stage, BatchStage):
        return stage
    hint = "; call .batches(schema) on it first" if isinstance(stage, Stage) else ""
    raise InvalidDAG(f"{users_line()} needs another stage of batches; got {shorten(stage)}{hint}")
