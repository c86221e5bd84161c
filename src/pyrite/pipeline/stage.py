"""Stage: the items at one point of a pipeline, the steps that can follow, and its ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pyrite.bad_records import FAIL, ErrorPolicy, checked_policy
from pyrite.pipeline.building import Options, node_after
from pyrite.pipeline.grouped import Grouped
from pyrite.pipeline.steps.all_items import AllItems
from pyrite.pipeline.steps.ends import Ends
from pyrite.pipeline.steps.one_by_one import OneByOne
from pyrite.pipeline.steps.services import WithServices
from pyrite.pipeline.steps.several import Several
from pyrite.processors.checks import checked_function
from pyrite.processors.columns.arrow_types import ArrowSchema
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.pipeline.batches.stage import BatchStage

T = TypeVar("T", covariant=True)
U = TypeVar("U")
K = TypeVar("K")
P = ParamSpec("P")


class Stage(OneByOne[T], WithServices[T], Several[T], AllItems[T], Ends[T]):
    """The items of type T at one point of a pipeline. It is immutable: each method returns another
    stage. A stage that is used twice is computed once.

    All steps take `name=`, the name of the vertex, and `parallelism=`, its processors per member.
    Those that call a function take `on_error=`: "fail", `pyrite.skip(...)` or
    `pyrite.dead_letter(sink, ...)`. Those that call it for one item at a time also take
    `retry=pyrite.Retry(times, ...)`.
    """

    __slots__ = ()

    def group_by(self, key: Callable[[T], K], *, on_error: ErrorPolicy = FAIL) -> Grouped[K, T]:
        """Groups of the items with the same key. Items whose key is None are a group, too.

        `on_error` is that of the step that follows, unless it has its own.

        >>> from pyrite import Pipeline
        >>> sorted(Pipeline().read_from("abcab").group_by(str.upper).count().collect())
        [('A', 2), ('B', 2), ('C', 1)]
        """
        checked_policy(on_error, f"group_by in {users_line()}")
        return Grouped(self, checked_function("group_by", "key", key), on_error=on_error)

    def pipe(
        self,
        fn: Callable[Concatenate[Stage[T], P], U],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> U:
        """`fn(stage, *args)`: for steps of one's own, in the middle of a chain.

        >>> from pyrite import Pipeline
        >>> def larger(stage, than):
        ...     return stage.filter(lambda n: n > than)
        >>> Pipeline().read_from([1, 2, 3]).pipe(larger, 2).collect()
        [3]
        """
        return fn(self, *args, **kwargs)

    def batches(
        self,
        schema: ArrowSchema | Mapping[str, Any],
        *,
        name: str | None = None,
        parallelism: int | None = None,
        on_error: ErrorPolicy = FAIL,
    ) -> BatchStage:
        """Puts the items together into batches of rows (Arrow), on which columnar steps work. The
        schema is a `pyarrow.Schema`, or a dict of names and types. An item is a dict with these
        columns, or a tuple in their order.

        >>> from pyrite import Pipeline
        >>> words = Pipeline().read_from([("a", 1), ("b", 2), ("a", 3)])
        >>> batches = words.batches({"word": "string", "n": "int64"})
        >>> sums = batches.group_by("word").aggregate(total=("n", "sum"))
        >>> sorted(sums.rows().map(lambda row: (row["word"], row["total"])).collect())
        [('a', 4), ('b', 2)]
        """
        from pyrite.pipeline.batches.stage import BatchStage
        from pyrite.processors.columns.doors import batches

        options = Options(name, parallelism, on_error)
        node = node_after([(self, self._local_shape())], "batches", batches(schema), options)
        return BatchStage._after(self, node)
