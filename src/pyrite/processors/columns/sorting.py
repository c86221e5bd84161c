"""sort_batches sorts the rows that one processor gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrite.context import ProcessorContext
from pyrite.processors.columns.kernel_step import KernelStep
from pyrite.processors.columns.memory import checked_memory
from pyrite.processors.columns.steps import Work
from pyrite.processors.ready_made import Inner
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.columns.kernels import Kernels
    from pyrite.columns.sorting.sorting import SortSpec


def sort_batches(
    by: Sequence[str],
    descending: bool | Sequence[bool] = False,
    *,
    memory: int | None = None,
    kernels: Kernels | None = None,
) -> Inner:
    """Emits all rows in the order of the columns `by`, when the input ends; equal rows stay in
    their order, and nulls come last. `descending` is for all columns, or one for each. Each
    processor sorts what it gets: for one order over all, use `.all_to_one()` or one processor.
    With more than `memory` bytes it spills to disk.

    >>> import pyarrow as pa
    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> batch = pa.record_batch({"n": [2, 3, 1]})
    >>> verify_processor(p.sort_batches(["n"]), [batch], [pa.record_batch({"n": [1, 2, 3]})])
    """
    from pyrite.columns.kernels import chosen_kernels
    from pyrite.columns.sorting.sorting import sort_spec

    where = f"sort_batches() in {users_line()}"
    spec = sort_spec(by, descending, where=where)
    return Inner(
        SortBatches(spec, chosen_kernels(kernels, where), checked_memory("sort_batches", memory))
    )


@dataclass(frozen=True, slots=True)
class SortBatches(KernelStep):
    spec: SortSpec
    absorbs_input = True

    def open(self, context: ProcessorContext) -> Work:
        from pyrite.columns.sorting.sorting import Sorting
        from pyrite.processors.columns.absorbing import AbsorbingWork

        return AbsorbingWork(Sorting(self.spec, **self.options(context)))
