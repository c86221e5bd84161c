"""Joins a part that no hash can divide, because its right rows have one key: the right side goes
through memory in blocks, and all left rows are compared with each block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from pyrite.columns.frames import Frame, as_batch
from pyrite.columns.joining.held import Flags, Held, filtered
from pyrite.columns.joining.spec import JoinSpec


def joined_in_blocks(
    spec: JoinSpec,
    left: Callable[[], Iterable[pa.RecordBatch]],
    right: Iterable[pa.RecordBatch],
    new_held: Callable[[JoinSpec], Held],
    budget: int,
) -> Iterator[Frame]:
    """The rows of the join. The matches of a left row are not next to each other, and left rows
    without a match come last. `left` is called once for each block."""
    by_block = replace(spec, how="right" if spec.keeps_right else "inner")
    has_match: list[Flags] = []
    schema: pa.Schema | None = None
    for block in _blocks(right, budget):
        schema = block[0].schema
        held = new_held(by_block)
        for batch in block:
            held.hold(batch)
        for number, batch in enumerate(left()):
            found = held.has(batch)
            if number == len(has_match):
                has_match.append(found)
            else:
                has_match[number] |= found
            if not spec.only_filters:
                yield from held.match(batch)
        if not spec.only_filters:
            yield from held.rest()
    if spec.how in ("inner", "right") or schema is None:
        return
    nothing = new_held(replace(spec, how="left"))
    nothing.hold(as_batch(schema.empty_table()))
    for batch, found in zip(left(), has_match):
        for frame in filtered(batch, found, spec.how == "semi"):
            yield from [frame] if spec.only_filters else nothing.match(frame)


def _blocks(batches: Iterable[pa.RecordBatch], budget: int) -> Iterator[list[pa.RecordBatch]]:
    block: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        block.append(batch)
        size += batch.nbytes
        if size >= budget:
            yield block
            block, size = [], 0
    if block:
        yield block
