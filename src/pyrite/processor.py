"""Processor, the interface for the code of a vertex, and AbstractProcessor, a simpler base class
that handles one item at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

from pyrite.bad_records import Handler, NotAboutOneItem
from pyrite.boxes import Inbox, Outbox
from pyrite.context import ProcessorContext
from pyrite.errors import ProcessorError
from pyrite.functions import describe, shorten
from pyrite.traverser import Traverser, iterate
from pyrite.weights import is_batch


class FailedAt(NamedTuple):
    """The item at which a call of a processor raised. `vertex`, `edge` and `supplier`, that of the
    vertex, are set only by a processor that runs several vertices. `is_result` if it is a result
    that the processor was about to emit, and no item that came in."""

    item: Any
    vertex: str | None = None
    edge: str | None = None
    supplier: Any = None
    is_result: bool = False


class Processor:
    """Takes items from its inbound edges and puts items into its outbox. A vertex has one or more
    processors, which run in parallel.

    The engine sets `outbox` and calls `init` once, then the other methods from one thread at a
    time, and `close` last. A call of a cooperative processor should take no more than about a
    millisecond. A processor with `cooperative = False` has its own thread and may block.
    """

    cooperative: bool = True
    polls: bool = True
    """Whether a processor that takes and emits nothing in a call may be waiting for something. If
    so, the engine may sleep before the next call."""
    columnar: bool = False
    """Whether it works on batches of rows, and is not cooperative only because a call takes long.
    In a Spark task it runs on the thread of the task."""
    outbox: Outbox
    held_bytes: int = 0
    """About how many bytes it holds in memory, and how many it has written to files because they
    did not fit: for metrics. Another thread may read them at any time."""
    spilled_bytes: int = 0

    def attach(self, outbox: Outbox) -> None:
        """Gives the processor its outbox. The engine calls this before `init`."""
        self.outbox = outbox

    def init(self, context: ProcessorContext) -> None:
        """Called once before all other methods. It may block."""

    def process(self, ordinal: int, inbox: Inbox) -> None:
        """Takes items from `inbox`, which is never empty here. Items that are left in it are
        presented again before new items."""
        raise ProcessorError(
            f"{describe(type(self))} got items on inbound edge {ordinal} but does not define "
            "process(ordinal, inbox)"
        )

    def try_process(self) -> bool | None:
        """Called when there are no input items. Return False to be called again before the next
        items are delivered."""
        return True

    def complete_edge(self, ordinal: int) -> bool | None:
        """Called when the edge at `ordinal` has ended. Return False to be called again."""
        return True

    def complete(self) -> bool | None:
        """Called when all inbound edges have ended. Return False to be called again."""
        return True

    def close(self, error: BaseException | None) -> None:
        """Called exactly once, as the last method, even if `init` raised or was not called. Errors
        that it raises are logged."""

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for another thread, which will call `context.wake()`, or for some time.
        Then the engine may sleep until it is woken, and for some milliseconds in any case."""
        return False

    @property
    def saves_state(self) -> bool:
        """Whether the processor has state to save. By default this is true if the class defines
        `save_snapshot`."""
        return type(self).save_snapshot is not Processor.save_snapshot

    @property
    def can_save(self) -> bool:
        """Whether `save_snapshot` may be called now. A job that cannot save a processor in the
        middle of an item waits until the item is done."""
        return True

    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        """Returns the state as (key, value) pairs, from which another processor can continue. It is
        called only between other calls."""
        return ()

    def restore_snapshot(self, key: Any, value: Any) -> None:
        """Restores one pair that `save_snapshot` returned. It is called after `init` and before the
        first item."""

    def failed_at(self, inbox: Inbox) -> FailedAt:
        """Called after another method raised. Returns the item that it was working on."""
        return FailedAt(item=inbox.last_taken())


class HandlesErrors(Processor):
    """A processor of Pyrite that passes the items that it cannot process to handlers itself."""

    def handle_errors(self, handlers: Sequence[Handler | None]) -> None:
        """Gives it a handler for each of its vertices, or None. Called before `init`."""
        raise NotImplementedError


class AbstractProcessor(Processor):
    """A processor that handles one item at a time.

    Override `try_process_0` to `try_process_4` for one edge each, or `try_process_any` for all
    edges. If the method returns False, the same item is presented again when there is room in the
    outbox. True or None means that the item is done.

    >>> class Doubler(AbstractProcessor):
    ...     def try_process_0(self, item):
    ...         self.emit(item * 2)
    """

    _emitted_at_once = 1
    """How many items to take from a traverser at a time. It adapts: slow traversers must not block
    the thread for long, and fast ones should have little overhead."""
    _is_steady = False
    _emits_batches = False
    """Whether it has emitted batches of rows: then the outbox is looked at after each item, because
    it is full with a few of them."""
    _failed_item: Any = None
    _holding_item: bool = False
    _unfinished: Iterator[Any] | None = None
    """The traverser that `emit_cooperatively` has not emitted to its end."""
    _abandoned: Iterator[Any] | None = None
    _try: list[Callable[[Any], bool | None]]
    _append: Callable[[Any], None]

    def attach(self, outbox: Outbox) -> None:
        super().attach(outbox)
        self._try = []
        self._append = outbox.buckets[0].append if len(outbox.buckets) == 1 else outbox.add

    def process(self, ordinal: int, inbox: Inbox) -> None:
        while ordinal >= len(self._try):
            self._try.append(self._try_method(len(self._try)))
        try_process = self._try[ordinal]
        outbox = self.outbox
        # Most vertices have one outbound edge; comparing the length of its bucket with `mark` is
        # the cheapest check. Without edges `mark` is 1 and `bucket` stays empty, so it is never
        # reached. With several edges `mark` is negative, so `is_full` checks all buckets.
        edges = len(outbox.buckets)
        bucket: list[Any] = outbox.buckets[0] if edges else []
        mark = outbox.high_water_marks[0] if edges == 1 else 1 - edges
        if self._emits_batches:
            mark = -1
        items = inbox.pending()
        remaining: Any = iter(items)
        item = None
        try:
            for item in remaining:
                taken = try_process(item)
                if taken is None or taken is True:
                    if len(bucket) < mark or not outbox.is_full():
                        continue
                    inbox.remove(len(items) - remaining.__length_hint__())
                    return
                if taken is not False:
                    raise wrong_answer(try_process, taken)
                inbox.remove(len(items) - remaining.__length_hint__() - 1)
                return
        except BaseException:
            self._failed_item, self._holding_item = item, True
            raise
        inbox.remove(len(items))
        if bucket and is_batch(bucket[0]):
            self._emits_batches = True

    def try_process_any(self, ordinal: int, item: Any) -> bool | None:
        """Processes an item of any inbound edge that has no `try_process_N` of its own. If it
        returns False, it is called again later with the same item."""
        raise ProcessorError(
            f"{describe(type(self))} got an item on inbound edge {ordinal} but defines neither "
            f"try_process_{ordinal} nor try_process_any"
        )

    def try_process_0(self, item: Any) -> bool | None:
        """Processes an item of inbound edge 0; so do `try_process_1` to `try_process_4` for their
        edges. If it returns False, it is called again later with the same item."""
        return self.try_process_any(0, item)

    def try_process_1(self, item: Any) -> bool | None:
        return self.try_process_any(1, item)

    def try_process_2(self, item: Any) -> bool | None:
        return self.try_process_any(2, item)

    def try_process_3(self, item: Any) -> bool | None:
        return self.try_process_any(3, item)

    def try_process_4(self, item: Any) -> bool | None:
        return self.try_process_any(4, item)

    def emit(self, item: Any, ordinal: int | None = None) -> None:
        """Puts an item into the outbox, for the edge at `ordinal` or for all edges."""
        if item is None or ordinal is not None:
            self.outbox.add(item, ordinal)
        else:
            self._append(item)

    def emit_cooperatively(
        self, traverser: Traverser[Any] | Iterator[Any], ordinal: int | None = None
    ) -> bool:
        """Emits items of a traverser until the outbox is full. Returns True when all items are
        emitted. If it returns False, call it again with the same traverser.

        Make the traverser once and keep it for the following calls: it keeps the position. Forget
        it when it raises, if the step has `on_error` or `retry`; `flat_mapper` does all of this.
        """
        if not isinstance(traverser, Iterator):
            raise ProcessorError(
                f"emit_cooperatively of {describe(type(self))} needs a traverser, which keeps its "
                f"position between calls; got {shorten(traverser)}. Make one with traverse(...) "
                "once, and keep it for the following calls"
            )
        if traverser is self._abandoned:
            raise NotAboutOneItem(
                f"{describe(type(self))} kept the traverser of an item for which it has raised, so "
                "the items that are left in it are not those of this item or this try; forget the "
                "traverser when it raises, or use self.flat_mapper(function), which does that"
            )
        self._unfinished = traverser
        count, started = self._emitted_at_once, perf_counter()
        while True:
            room = min(self.outbox.room(ordinal), count)
            if room <= 0:
                return False
            items = list(islice(traverser, room))
            if items:
                self.outbox.add_all(items, ordinal)
            is_slow = not self._is_steady and perf_counter() - started > _LONG_ENOUGH
            count = max(1, count // 4) if is_slow else min(4 * count, _CHUNK)
            if items and is_batch(items[0]):
                count, self._emits_batches = 1, True
            if is_slow or len(items) == room:
                self._emitted_at_once = count
            if len(items) < room:
                self._unfinished = None
                return True
            if is_slow:
                return False

    def abandon_item(self) -> None:
        """Called when an item has raised and something else follows: another try, or the next
        item. A traverser of which only a part was emitted belongs to neither."""
        self._abandoned = self._unfinished

    def keep_steady_pace(self) -> None:
        """From now on, the clock does not decide how much is emitted at a time: a task that is run
        again must do the same in the same order."""
        self._is_steady = True

    def flat_mapper(self, function: Callable[[Any], Traverser[Any] | Iterable[Any]]) -> FlatMapper:
        """A helper that calls `function` once per item and emits all items that it returns, over
        several calls if the outbox is full."""
        return FlatMapper(self, function)

    def failed_at(self, inbox: Inbox) -> FailedAt:
        return FailedAt(item=self._failed_item if self._holding_item else inbox.peek())

    def _try_method(self, ordinal: int) -> Callable[[Any], bool | None]:
        if ordinal < len(_TRY_NAMES):
            method: Callable[[Any], bool | None] = getattr(self, _TRY_NAMES[ordinal])
            return method
        return lambda item: self.try_process_any(ordinal, item)


class FlatMapper:
    """Made by `AbstractProcessor.flat_mapper`. Call it from `try_process_N`, and return its
    result."""

    __slots__ = ("_function", "_processor", "_rest")

    def __init__(
        self, processor: AbstractProcessor, function: Callable[[Any], Iterable[Any]]
    ) -> None:
        self._processor = processor
        self._function = function
        self._rest: Iterator[Any] | None = None

    def try_process(self, item: Any) -> bool:
        if self._rest is None:
            made = self._function(item)
            if type(made) is list or type(made) is tuple:  # all items exist already
                outbox = self._processor.outbox
                if len(made) <= outbox.room():
                    outbox.add_all(made)
                    return True
            self._rest = iterate(made, self._function)
        try:
            if not self._processor.emit_cooperatively(self._rest):
                return False
        except BaseException:
            self._rest = None  # whoever goes on after an error goes on with the next item
            raise
        self._rest = None
        return True

    __call__ = try_process


_TRY_NAMES: tuple[str, ...] = tuple(f"try_process_{ordinal}" for ordinal in range(5))
_CHUNK = 1024
_LONG_ENOUGH = 0.001
"""After this many seconds, `emit_cooperatively` returns so that other processors can run."""


def wrong_answer(method: Callable[..., Any], answer: object) -> ProcessorError:
    return ProcessorError(
        f"return value of {describe(method)} must be a bool or None; got {shorten(answer)}"
    )
