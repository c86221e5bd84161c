"""Runs columnar steps, of one vertex or of several fused vertices, in one processor.

A frame passes through all steps before the next is taken. The steps are generators, so a step that
makes many frames of one waits while the outbox is full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyrite.bad_records import BadRecord, Handler
from pyrite.boxes import Inbox
from pyrite.context import ProcessorContext
from pyrite.errors import ProcessorError
from pyrite.functions import shorten
from pyrite.partitioning import InvalidKey
from pyrite.processor import FailedAt
from pyrite.processors.columns.sources.reading import ReadBatches
from pyrite.processors.columns.steps import BatchStep, Work
from pyrite.processors.columns.whole_groups import with_whole_groups
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.fused import FusedProcessor, Link
from pyrite.processors.loops.loop import Guard
from pyrite.processors.loops.steps import BadItem, ReadStep, Writer, WriteStep
from pyrite.weights import is_batch

if TYPE_CHECKING:
    import pyarrow as pa

    from pyrite.processors.columns.no_rows import Columns


class BatchChain:
    """Columnar steps in a row. Only the first may be a source, and only the last a sink."""

    def __init__(self, links: Sequence[Link], *, emits: bool) -> None:
        self.links = tuple(links)
        first, last = links[0].step, links[-1].step
        self.source = first if isinstance(first, ReadStep) else None
        self.sink = last if isinstance(last, WriteStep) else None
        self.emits = emits
        steps = [
            (index, link.step)
            for index, link in enumerate(links)
            if isinstance(link.step, BatchStep)
        ]
        whole = with_whole_groups([step for _, step in steps])
        self.steps = [(index, step) for (index, _), step in zip(steps, whole)]
        """The steps between source and sink, each with the index of its link."""

    def processor(self) -> BatchProcessor:
        return BatchProcessor(self)


class BatchProcessor(FusedProcessor):
    """Runs a chain of columnar steps. It holds its thread for long, so it has one of its own."""

    cooperative = False
    columnar = True
    polls = False

    def __init__(self, chain: BatchChain) -> None:
        self.chain: BatchChain = chain
        self._works: list[Work] = []
        self._links = [index for index, _ in chain.steps]
        """By work, the index of its link."""
        self._received = [0] * len(chain.links)
        self._emitted = [0] * len(chain.links)
        self._writer: Writer | None = None
        self._columns: Columns | None = None
        """What is known of the columns if no rows are written."""
        self._frames: Iterator[Any] | None = None
        self._flow: Iterator[Any] | None = None
        """What is left to emit of the item at the head of the inbox, or of the end of an edge."""
        self._taken = 0
        """How many items of the inbox the flow is made of."""
        self._ending: Iterator[Any] | None = None
        self._at_work = 0
        """The link whose code runs, and the frame that it works on, for errors."""
        self._item: Any = None
        self._handlers: Sequence[Handler | None] = ()

    def handle_errors(self, handlers: Sequence[Handler | None]) -> None:
        self._handlers = handlers

    def init(self, context: ProcessorContext) -> None:
        for index, step in self.chain.steps:
            self._at_work = index
            work = step.open(replace(context, vertex_name=self.chain.links[index].vertex))
            work.handler = self._handlers[index] if self._handlers else None
            self._works.append(work)
        self._at_work = 0
        if self.chain.source is not None:
            self._frames = self._open_source(self.chain.source, context)
        if self.chain.sink is not None:
            from pyrite.processors.columns.no_rows import Columns

            self._columns = Columns()
            self._at_work = len(self.chain.links) - 1
            vertex = self.chain.links[-1].vertex
            self._writer = self.chain.sink.open(replace(context, vertex_name=vertex))
            self._at_work = 0

    def process(self, ordinal: int, inbox: Inbox) -> None:
        if self._flow is None:
            taken: Any = inbox.peek()
            self._taken = 1
            if self.chain.steps and self.chain.steps[0][1].takes_items:
                taken = inbox.pending()
                self._taken = len(taken)
            elif not is_batch(taken):
                self._item = taken
                raise not_a_batch(self.chain.links[0].vertex, taken)
            self._flow = self._through(0, taken, ordinal)
        if self._pull(self._flow):
            self._flow = None
            # Until now it stays in the inbox: a snapshot is only consistent between two items.
            inbox.remove(self._taken)

    def complete_edge(self, ordinal: int) -> bool:
        if not self._works:
            return True
        if self._flow is None:
            self._flow = self._passed_on(0, self._works[0].end_edge(ordinal))
        if not self._pull(self._flow):
            return False
        self._flow = None
        return True

    def complete(self) -> bool:
        if self._ending is None:
            self._ending = self._end()
        if not self._pull(self._ending):
            return False
        if self._writer is not None:
            assert self._columns is not None
            for frame in self._columns.if_no_rows_came():
                self._write(frame, is_last=True)
            self._at_work, self._item = len(self.chain.links) - 1, None
            self.report = self._writer.complete()
        return True

    def close(self, error: BaseException | None) -> None:
        close = getattr(self._frames, "close", None)
        if close is not None:
            close()
        for work in self._works:
            work.close()
        if self._writer is not None:
            self._writer.close()

    @property
    def can_save(self) -> bool:
        return self._flow is None and self._ending is None

    @property
    def saves_state(self) -> bool:
        return any(work.has_state for work in self._works)

    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        return [
            ((number, key), value)
            for number, work in enumerate(self._works)
            for key, value in work.save()
        ]

    def restore_snapshot(self, key: Any, value: Any) -> None:
        number, of = key
        self._works[number].restore(of, value)

    def failed_at(self, inbox: Inbox) -> FailedAt:
        links, index = self.chain.links, self._at_work
        edge = f"'{links[index - 1].vertex} -> {links[index].vertex}'" if index else None
        supplier = StepSupplier(links[index].step.without_secrets())
        return FailedAt(_as_item(self._item), links[index].vertex, edge, supplier)

    def vertex_counts(self) -> list[tuple[int, int]]:
        return list(zip(self._received, self._emitted))

    def vertex_memory(self) -> list[tuple[int, int]]:
        memory = [(0, 0)] * len(self.chain.links)
        for index, work in zip(self._links, self._works):
            memory[index] = (work.held_bytes, work.spilled_bytes)
        return memory

    def _open_source(self, source: ReadStep, context: ProcessorContext) -> Iterator[Any]:
        """The frames of a source, of the kind that the next steps take as they are."""
        if isinstance(source, ReadBatches):
            kinds = (step.prefers for _, step in self.chain.steps)
            return source.frames(context, next(filter(None, kinds), "arrow"), self._expect)
        return source.open(context)

    def _expect(self, schema: pa.Schema) -> None:
        """Tells works the types of the source's columns, up to one that may change them."""
        told: pa.Schema | None = schema
        for work in self._works:
            if told is not None:
                told = work.expect(told)

    def _pull(self, flow: Iterator[Any]) -> bool:
        """Emits what the flow makes until the outbox is full, or until it pauses. Returns whether
        the flow has ended."""
        while not self.outbox.is_full():
            try:
                made = next(flow)
            except StopIteration:
                return True
            if made is None:
                return False
            self._emit(made)
        return False

    def _emit(self, made: Any) -> None:
        if self._writer is not None:
            self._write(made)
        elif not self.outbox.buckets:
            return
        elif isinstance(made, list):
            self.outbox.add_all(made)
        else:
            from pyrite.columns.frames import batches_of, compact

            for batch in batches_of(compact(made)):
                self.outbox.add(batch)

    def _write(self, made: Any, *, is_last: bool = False) -> None:
        from pyrite.columns.frames import batches_of, rows_in

        assert self._writer is not None
        assert self._columns is not None
        if not self._columns.has_rows(made) and not is_last:
            return
        self._at_work, self._item = len(self.chain.links) - 1, made
        self._received[-1] += rows_in(made)
        try:
            self._writer.write(list(batches_of(made)))
        except BadItem as error:
            self._item = error.item
            raise

    def _end(self) -> Iterator[Any]:
        """All that is made when the input has ended. It pauses after each frame of a source."""
        while self._frames is not None:
            self._at_work, self._item = 0, None
            frame = next(self._frames, None)
            if frame is None:
                self._frames = None
            elif isinstance(frame, BadRecord):
                handler = self._handlers[0]
                assert handler is not None
                handler(frame.item, frame.error)
            else:
                self._emitted[0] += _count(frame)
                yield from self._through(0, frame, 0)
                yield None
        for number, work in enumerate(self._works):
            yield from self._passed_on(number, work.end())

    def _through(self, number: int, item: Any, ordinal: int) -> Iterator[Any]:
        """What the works from this one on make of a frame."""
        if number == len(self._works):
            yield item
            return
        index = self._links[number]
        self._at_work, self._item = index, item
        guard = self.chain.links[index].guard
        if guard is not None:
            self._check(guard, item)
        self._received[index] += _count(item)
        yield from self._passed_on(number, self._works[number].take(item, ordinal), item)

    def _passed_on(self, number: int, made: Iterator[Any], item: Any = None) -> Iterator[Any]:
        """What the works behind this one make of each frame that it has made."""
        while True:
            index = self._links[number]
            self._at_work, self._item = index, item
            try:
                frame = next(made, None)
            except BadItem as error:
                self._item = error.item
                raise
            if frame is None:
                return
            self._emitted[index] += _count(frame)
            yield from self._through(number + 1, frame, 0)
            yield None  # the steps behind it may emit nothing for a long time

    def _check(self, guard: Guard, item: Any) -> None:
        """The key check of a fused partitioned edge."""
        try:
            from pyrite.columns.frames import as_batch, narrowed

            batch = as_batch(narrowed(item, guard.columns) if guard.columns else item)
            guard.check(batch if guard.key is None else guard.key(batch))
        except InvalidKey:
            self._at_work -= 1  # a bad key is a fault of the vertex that sends it
            raise


def not_a_batch(vertex: str, item: Any) -> ProcessorError:
    return ProcessorError(
        f"vertex '{vertex}' works on batches of rows (pyarrow.RecordBatch), but it got "
        f"{shorten(item)} of type {type(item).__name__}; put p.batches(schema) before it, or emit "
        "record batches"
    )


def _as_item(made: Any) -> Any:
    """What errors show: frames as batches, as they are on edges."""
    from pyrite.columns.frames import as_batch, is_frame

    return as_batch(made) if is_frame(made) else made


def _count(made: Any) -> int:
    if isinstance(made, list):
        return sum(item.num_rows if is_batch(item) else 1 for item in made)
    from pyrite.columns.frames import rows_in

    return rows_in(made)
