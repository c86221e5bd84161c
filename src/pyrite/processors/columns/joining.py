"""join_batches joins the rows of two edges by columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrite.context import ProcessorContext
from pyrite.processors.columns.kernel_step import KernelStep
from pyrite.processors.columns.memory import checked_memory
from pyrite.processors.columns.steps import Work
from pyrite.processors.joins.hash_join import LEFT, RIGHT
from pyrite.processors.ready_made import Inner
from pyrite.where import users_line

if TYPE_CHECKING:
    from pyrite.columns.joining.joining import JoinHow, JoinSpec
    from pyrite.columns.kernels import Kernels


def join_batches(
    left_on: Sequence[str],
    right_on: Sequence[str],
    how: JoinHow = "inner",
    *,
    memory: int | None = None,
    kernels: Kernels | None = None,
) -> Inner:
    """Joins rows whose columns `left_on` and `right_on` are equal. `how` is inner, left, right,
    full, semi or anti. The inbound edge at ordinal 0 is the right side, which is held; give it the
    lower priority number. The edge at ordinal 1 is the left side, which flows. A row has the
    columns of the left side, then those of the right side without its keys; a name that both
    have gets `_right` at the end.

    Over several processors, partition both edges by their columns, or broadcast the right side
    (not for right and full). With more than `memory` bytes it spills to disk.

    >>> import pyarrow as pa
    >>> from pyrite import DAG, between, from_, instance, processors as p
    >>> dag = DAG()
    >>> people = pa.record_batch({"id": [1, 2], "name": ["Ada", "Bo"]})
    >>> visits = pa.record_batch({"person": [2, 3], "day": ["Mo", "Tu"]})
    >>> right = dag.vertex("people", p.read_items([people]))
    >>> left = dag.vertex("visits", p.read_items([visits]))
    >>> join = dag.vertex("join", p.join_batches(left_on=["person"], right_on=["id"]))
    >>> rows, out = dag.vertex("rows", p.rows()), dag.vertex("out", p.write_list("named"))
    >>> by_id = from_(right).to(join, 0).distributed().partitioned(columns=["id"])
    >>> by_person = from_(left).to(join, 1).distributed().partitioned(columns=["person"])
    >>> dag = dag.edge(by_id).edge(by_person.priority(1))
    >>> dag = dag.edge(between(join, rows)).edge(between(rows, out))
    >>> with instance() as pyr:
    ...     pyr.new_light_job(dag).execute().result()
    ...     list(pyr.list("named"))
    [{'person': 2, 'day': 'Mo', 'name': 'Bo'}]
    """
    from pyrite.columns.joining.joining import join_spec
    from pyrite.columns.kernels import chosen_kernels

    where = f"join_batches() in {users_line()}"
    spec = join_spec(left_on, right_on, how, where=where)
    return Inner(
        JoinBatches(spec, chosen_kernels(kernels, where), checked_memory("join_batches", memory))
    )


@dataclass(frozen=True, slots=True)
class JoinBatches(KernelStep):
    spec: JoinSpec

    def open(self, context: ProcessorContext) -> Work:
        return _JoinWork(self, context)


class _JoinWork(Work):
    has_state = True

    def __init__(self, step: JoinBatches, context: ProcessorContext) -> None:
        from pyrite.columns.joining.joining import Joining
        from pyrite.processors.columns.no_rows import Columns

        self._columns = Columns(), Columns()
        """By ordinal, what is known of a side without rows."""
        self._joining = Joining(step.spec, **step.options(context))

    def take(self, item: Any, ordinal: int) -> Iterator[Any]:
        from pyrite.columns.frames import compact

        if not self._columns[ordinal].has_rows(item):
            return iter(())
        if ordinal == RIGHT:
            self._joining.hold(compact(item))
            return iter(())
        return self._joining.match(item)

    def end_edge(self, ordinal: int) -> Iterator[Any]:
        if ordinal == RIGHT:
            for frame in self._columns[RIGHT].if_no_rows_came():
                self._joining.hold(frame)
            self._joining.end_held()
        return iter(())

    def end(self) -> Iterator[Any]:
        for frame in self._columns[LEFT].if_no_rows_came():
            yield from self._joining.match(frame)
        yield from self._joining.rest()

    def save(self) -> Iterable[tuple[Any, Any]]:
        yield from self._joining.save()
        for ordinal, columns in enumerate(self._columns):
            yield from ((ordinal, batch) for batch in columns.save())

    def restore(self, key: Any, value: Any) -> None:
        if isinstance(key, int):
            self._columns[key].restore(value)
            return
        if key[0] == "right":
            self._columns[RIGHT].restore(value)
        self._joining.restore(key, value)

    def close(self) -> None:
        self._joining.close()

    @property
    def held_bytes(self) -> int:  # type: ignore[override]
        return self._joining.held_bytes

    @property
    def spilled_bytes(self) -> int:  # type: ignore[override]
        return self._joining.spilled_bytes
