"""BatchGrouped: rows in groups by columns, and the aggregates of each group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyrite.errors import InvalidDAG
from pyrite.pipeline.building import Options, node_after
from pyrite.pipeline.edges import all_to_one, by_columns, side_by_side
from pyrite.pipeline.nodes import Inlet, Node
from pyrite.processors.columns.grouping import group_batches
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.pipeline.batches.stage import BatchStage


class BatchGrouped:
    """Rows in groups, as `stage.group_by(*columns)` makes them."""

    __slots__ = ("_by", "_stage")

    def __init__(self, stage: BatchStage, by: tuple[str, ...]) -> None:
        self._stage = stage
        self._by = by

    def aggregate(
        self,
        aggregates: Mapping[str, tuple[str, str]] | None = None,
        /,
        *,
        name: str | None = None,
        parallelism: int | None = None,
        memory: int | None = None,
        **named: tuple[str, str],
    ) -> BatchStage:
        """A row for each group: the columns of the group, then the aggregates, each with its name,
        its column and its function: sum, mean, min, max, count, count_distinct or first. They are
        given by name, or as a dict. Each processor combines what it has of a group; then each group
        goes to one processor. With more than `memory` bytes of groups it spills to disk.

        >>> from pyrite import Pipeline
        >>> sales = Pipeline().read_from([("a", 1), ("b", 2), ("a", 3)])
        >>> batches = sales.batches({"shop": "string", "price": "int64"})
        >>> totals = batches.group_by().aggregate(n=("price", "count"), most=("price", "max"))
        >>> totals.rows().collect()
        [{'n': 3, 'most': 3}]
        """
        both = {**(aggregates or {}), **named}
        if not both:
            raise InvalidDAG(
                f"aggregate() in {users_line()} needs at least one aggregate, such as "
                "total=('price', 'sum')"
            )
        by, stage = list(self._by), self._stage
        before = node_after(
            [(stage, side_by_side)],
            f"{name or 'aggregate'}-combine",
            group_batches(by, both, partial=True, memory=memory),
            Options(parallelism=parallelism),
        )
        node = Node(
            name=name or "aggregate",
            given=name is not None,
            supplier=group_batches(by, both, final=True, memory=memory),
            inlets=(Inlet(before, by_columns(by) if by else all_to_one),),
            where=before.where,
            parallelism=before.parallelism,
        )
        return stage._after(stage, node)
