"""Runs a processor whose errors are handled, if it does not do that itself. It gets one item at a
time, so that it is known which item it cannot process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyrite.bad_records import Handler
from pyrite.boxes import Inbox, Outbox
from pyrite.context import ProcessorContext
from pyrite.processor import AbstractProcessor, FailedAt, HandlesErrors, Processor

_UNLIMITED = 1 << 30


class Forgiving(HandlesErrors):
    """What the processor emits for an item is held until the item is done, and dropped if it
    raises. What it has changed in its own state before it raises stays changed. An error in
    another method than `process` is not about an item, so it fails the job."""

    def __init__(self, processor: Processor) -> None:
        self.processor = processor
        self.cooperative = processor.cooperative
        self._one = Inbox()
        """Holds the item that the processor works on. It also stays in the engine's inbox."""
        self._item: Any = None
        self._failures = 0
        self._until: float | None = None
        """When the item is tried again, after it has failed."""
        self._handler: Handler | None = None

    @property
    def polls(self) -> bool:  # type: ignore[override]
        return self.processor.polls or (self._handler is not None and self._handler.is_waiting)

    def handle_errors(self, handlers: Sequence[Handler | None]) -> None:
        (self._handler,) = handlers

    def attach(self, outbox: Outbox) -> None:
        super().attach(outbox)
        self._own = Outbox(outbox.high_water_marks, outbox.vertex)
        self.processor.attach(self._own)

    def init(self, context: ProcessorContext) -> None:
        self.processor.init(context)

    def process(self, ordinal: int, inbox: Inbox) -> None:
        handler = self._handler
        assert handler is not None
        # The processor must be able to finish an item, whatever it emits.
        self._own.high_water_marks[:] = [_UNLIMITED] * len(self._own.buckets)
        while inbox and not self.outbox.is_full():
            if self._until is not None and handler.waits(self._until):
                return
            if not self._one:
                self._item = inbox.peek()
                self._one.extend([self._item])
            try:
                self.processor.process(ordinal, self._one)
            except Exception as error:
                self._drop()
                self._failures += 1
                self._until = handler.again(error, self._failures)
                if self._until is None:
                    self._done(inbox)
                    handler(self._item, error)
                continue
            if self._one:  # it waits for something, or has worked for long enough
                return
            self._done(inbox)
            self._emit()

    def try_process(self) -> bool | None:
        return self._emitting(self.processor.try_process())

    def complete_edge(self, ordinal: int) -> bool | None:
        self._own.high_water_marks[:] = self.outbox.high_water_marks
        return self._emitting(self.processor.complete_edge(ordinal))

    def complete(self) -> bool | None:
        self._own.high_water_marks[:] = self.outbox.high_water_marks
        return self._emitting(self.processor.complete())

    @property
    def is_waiting(self) -> bool:
        return self.processor.is_waiting or (self._handler is not None and self._handler.is_waiting)

    def close(self, error: BaseException | None) -> None:
        self.processor.close(error)

    @property
    def held_bytes(self) -> int:  # type: ignore[override]
        return self.processor.held_bytes

    @property
    def spilled_bytes(self) -> int:  # type: ignore[override]
        return self.processor.spilled_bytes

    @property
    def saves_state(self) -> bool:
        return self.processor.saves_state

    @property
    def can_save(self) -> bool:
        return self.processor.can_save

    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        return self.processor.save_snapshot()

    def restore_snapshot(self, key: Any, value: Any) -> None:
        self.processor.restore_snapshot(key, value)

    def failed_at(self, inbox: Inbox) -> FailedAt:
        return FailedAt(self._item)

    def keep_steady_pace(self) -> None:
        if isinstance(self.processor, AbstractProcessor):
            self.processor.keep_steady_pace()

    def _done(self, inbox: Inbox) -> None:
        inbox.remove()
        self._failures, self._until = 0, None

    def _emitting(self, answer: bool | None) -> bool | None:
        self._emit()
        return answer

    def _emit(self) -> None:
        for made, bucket in zip(self._own.buckets, self.outbox.buckets):
            bucket.extend(made)
            made.clear()

    def _drop(self) -> None:
        self._one = Inbox()
        for made in self._own.buckets:
            made.clear()
        if isinstance(self.processor, AbstractProcessor):
            self.processor.abandon_item()
