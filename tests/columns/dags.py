"""DAGs of users' own processors through which batches of rows go, and where their rows arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from pyrite import DAG, AbstractProcessor, Edge, ProcessorContext, between
from pyrite import processors as p
from pyrite.partitioning import partition_id
from pyrite.processor import Processor

Rows = list[tuple[int, dict[str, Any]]]
"""Each row, with the number of the processor in the whole job that got it."""


def numbered(start: int, count: int) -> pa.RecordBatch:
    """Rows with a number and a text, which differ in each row."""
    numbers = range(start, start + count)
    return pa.record_batch({"n": list(numbers), "text": [f"t{n}" for n in numbers]})


class Makes(AbstractProcessor):
    """Emits batches of rows, each row once in the whole job."""

    def __init__(self, batches: int = 10, rows: int = 20) -> None:
        self.batches, self.rows = batches, rows

    def init(self, context: ProcessorContext) -> None:
        mine = range(context.global_index, self.batches, context.total_parallelism)
        self.rest: Iterator[pa.RecordBatch] = (numbered(self.rows * n, self.rows) for n in mine)

    def complete(self) -> bool:
        return self.emit_cooperatively(self.rest)


class Tells(AbstractProcessor):
    """Emits each row with the number of this processor, and how many batches it got at the end."""

    def init(self, context: ProcessorContext) -> None:
        self.index = context.global_index

    def try_process_0(self, batch: Any) -> None:
        rows = batch.to_pylist() if isinstance(batch, pa.RecordBatch) else [batch]
        for row in rows:
            self.emit((self.index, row))


def told(
    shape: Callable[[Edge], Edge],
    *,
    senders: int = 2,
    receivers: int = 3,
    source: Any = Makes,
    receiver: Callable[[], Processor] = Tells,
    sink: str = "told",
) -> DAG:
    """A source of batches, an edge of this shape, and a list with what its receivers tell."""
    dag = DAG()
    makes = dag.vertex("makes", source, local_parallelism=senders)
    tells = dag.vertex("tells", receiver, local_parallelism=receivers)
    keeps = dag.vertex("keeps", p.write_list(sink), local_parallelism=1)
    return dag.edge(shape(between(makes, tells))).edge(between(tells, keeps))


def owner(key: Any, receivers: int, members: int = 1) -> int:
    """The number of the processor to which the partition of a key belongs."""
    partition = partition_id(key)
    member, local = partition % members, partition // members % receivers
    return member * receivers + local
