"""Columnar steps describe the work of vertices on batches of rows. `chain` runs several of them in
one processor.

Between two fused steps a frame travels as it is: a RecordBatch, an Arrow table or a Polars
DataFrame. Only what leaves the processor becomes batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pyrite.bad_records import Handler
from pyrite.context import ProcessorContext
from pyrite.processors.loops.steps import Step

if TYPE_CHECKING:
    import pyarrow as pa

FrameKind: TypeAlias = Literal["arrow", "polars"]


class BatchStep(Step):
    """The work of one vertex on batches."""

    __slots__ = ()
    columnar = True
    takes_items = False
    """Whether it takes items that are not batches. Only the first step of a chain may."""
    gives_items = False
    """Whether it gives items that are not batches. Only the last step of a chain may."""
    suits_any_processor = False
    """Whether the result does not depend on which processor gets which batch."""
    handles_errors = False
    """Whether it knows which rows it cannot process, so that it can have `on_error`."""
    prefers: FrameKind | None = "arrow"
    """The frames that it takes without converting them; None if it takes and gives all kinds."""

    def open(self, context: ProcessorContext) -> Work:
        """The work of one processor."""
        raise NotImplementedError


class Work:
    """What a columnar step does in one processor, with its state."""

    handler: Handler | None = None
    """Takes the rows that cannot be processed; None if they fail the job."""
    has_state = False
    held_bytes = 0
    """About how many bytes it holds in memory, and how many it has written to files because they
    did not fit. Another thread may read them at any time."""
    spilled_bytes = 0

    def expect(self, schema: pa.Schema) -> pa.Schema | None:
        """Tells the types in Arrow of the columns that come: frames of Polars have large strings in
        place of strings. Returns those of what it gives, or None if they are not known."""
        return None

    def take(self, item: Any, ordinal: int) -> Iterator[Any]:
        """The frames that are made of one frame of an inbound edge. A step that takes items gets a
        list of them; a step that gives items gives lists of them."""
        raise NotImplementedError

    def end_edge(self, ordinal: int) -> Iterator[Any]:
        """The frames that are made when an inbound edge has ended."""
        return iter(())

    def end(self) -> Iterator[Any]:
        """The frames that are made when all input has ended."""
        return iter(())

    def save(self) -> Iterable[tuple[Any, Any]]:
        return ()

    def restore(self, key: Any, value: Any) -> None:
        """Restores one pair of `save`."""

    def close(self) -> None:
        """Called once, also after a failure."""
