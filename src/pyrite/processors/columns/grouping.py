"""group_batches groups the rows of batches by columns and computes aggregates of each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrite.context import ProcessorContext
from pyrite.errors import InvalidDAG
from pyrite.processors.columns.kernel_step import KernelStep
from pyrite.processors.columns.memory import checked_memory
from pyrite.processors.columns.steps import Work
from pyrite.processors.ready_made import Inner
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.columns.grouping.aggregates import GroupSpec
    from pyrite.columns.kernels import Kernels


def group_batches(
    by: Sequence[str],
    aggregates: Mapping[str, tuple[str, str]],
    *,
    partial: bool = False,
    final: bool = False,
    memory: int | None = None,
    kernels: Kernels | None = None,
) -> Inner:
    """Groups rows by the columns `by`, and emits a row for each group when the input ends: these
    columns, then the aggregates. `aggregates` has the name of each with its column and function:
    sum, mean, min, max, count, count_distinct or first.

    A grouping over several processors has two halves: `partial=True` emits the states of its groups
    in place of results, and after an edge `.partitioned(columns=by)` the same call with
    `final=True` takes these states. With more than `memory` bytes of groups it spills to disk.

    >>> import pyarrow as pa
    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> sales = pa.record_batch({"shop": ["a", "b", "a"], "price": [1, 2, 3]})
    >>> totals = p.group_batches(["shop"], {"total": ("price", "sum"), "n": ("price", "count")})
    >>> result = pa.record_batch({"shop": ["a", "b"], "total": [4, 2], "n": [2, 1]})
    >>> verify_processor(totals, [sales], [result])
    """
    from pyrite.columns.grouping.aggregates import group_spec
    from pyrite.columns.kernels import chosen_kernels

    where = f"group_batches() in {users_line()}"
    if partial and final:
        raise InvalidDAG(
            f"{where} cannot be partial and final: a grouping is complete, or the first of its two "
            "halves (partial=True), or the second (final=True)"
        )
    spec = group_spec(
        by,
        aggregates,
        takes="states" if final else "rows",
        gives="states" if partial else "rows",
        where=where,
    )
    return Inner(
        GroupBatches(spec, chosen_kernels(kernels, where), checked_memory("group_batches", memory))
    )


@dataclass(frozen=True, slots=True)
class GroupBatches(KernelStep):
    spec: GroupSpec
    absorbs_input = True

    @property
    def suits_any_processor(self) -> bool:  # type: ignore[override]
        return self.spec.gives == "states"

    def open(self, context: ProcessorContext) -> Work:
        from pyrite.columns.grouping.grouping import Grouping
        from pyrite.processors.columns.absorbing import AbsorbingWork

        options = self.options(context)
        return AbsorbingWork(Grouping(self.spec, keep_order=context.must_repeat, **options))
