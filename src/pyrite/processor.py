"""Processor: the code of a vertex; and AbstractProcessor, which takes the trouble out of writing
one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

from pyrite.boxes import Inbox, Outbox
from pyrite.context import ProcessorContext
from pyrite.errors import ProcessorError
from pyrite.functions import describe, shorten
from pyrite.traverser import Traverser, iterate


class FailedAt(NamedTuple):
    """Where a call of a processor raised. `vertex` and `edge` only if it does the work of several
    vertices."""

    item: Any
    vertex: str | None = None
    edge: str | None = None


class Processor:
    """Takes items from its inbound edges and puts items into its outbox; one of those that do a
    vertex's work.

    The engine sets `outbox`, then calls `init` once, then the others from one thread at a time, and
    `close` last. A call of a cooperative processor should take no more than about a millisecond;
    one with `cooperative = False` has a thread of its own and may block.
    """

    cooperative: bool = True
    polls: bool = True
    """Whether `complete` that returns False and emits nothing may be waiting for something, so that
    the engine may pause."""
    outbox: Outbox

    def attach(self, outbox: Outbox) -> None:
        """Gives the processor its outbox. The engine calls this before `init`."""
        self.outbox = outbox

    def init(self, context: ProcessorContext) -> None:
        """Called once, before anything else. It may block."""

    def process(self, ordinal: int, inbox: Inbox) -> None:
        """Takes items from `inbox`, which is never empty here. What is left in it comes again
        before anything new."""
        raise ProcessorError(
            f"{describe(type(self))} got items on inbound edge {ordinal} but does not define "
            "process(ordinal, inbox)"
        )

    def try_process(self) -> bool | None:
        """Called when there is nothing to deliver. Return False to be called again before anything
        is delivered."""
        return True

    def complete_edge(self, ordinal: int) -> bool | None:
        """Called when the edge at `ordinal` has ended, again and again until it does not return
        False."""
        return True

    def complete(self) -> bool | None:
        """Called when all inbound edges have ended, again and again until it does not return
        False."""
        return True

    def close(self, error: BaseException | None) -> None:
        """Called exactly once, last, also when `init` raised or was not reached. What it raises is
        logged."""

    @property
    def saves_state(self) -> bool:
        """Whether the processor has a state to save: by default, whether it defines
        `save_snapshot`."""
        return type(self).save_snapshot is not Processor.save_snapshot

    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        """The state, as (key, value) pairs, from which another processor can go on. Only called
        between other calls."""
        return ()

    def restore_snapshot(self, key: Any, value: Any) -> None:
        """Takes back one pair of what `save_snapshot` gave. Called after `init`, before any
        item."""

    def failed_at(self, inbox: Inbox) -> FailedAt:
        """After a call raised: where it was."""
        return FailedAt(item=inbox.last_taken())


class AbstractProcessor(Processor):
    """A processor that handles one item at a time.

    Override `try_process_0` .. `try_process_4` for an edge each, or `try_process_any` for all.
    Return False to be given the same item again, when there is room in the outbox; True or None
    takes the item.

    >>> class Doubler(AbstractProcessor):
    ...     def try_process_0(self, item):
    ...         self.emit(item * 2)
    """

    _emitted_at_once = 1
    """How many items to take from a traverser at a time: learned, so that slow ones do not hold up
    others, and quick ones cost little."""
    _is_steady = False
    _failed_item: Any = None
    _holding_item: bool = False
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
        # The one edge that nearly every vertex has is checked at next to no cost. A sink never
        # fills its outbox; with several edges the mark is one that is always reached, and the
        # outbox is asked.
        edges = len(outbox.buckets)
        bucket: list[Any] = outbox.buckets[0] if edges else []
        mark = outbox.high_water_marks[0] if edges == 1 else 1 - edges
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

    def try_process_any(self, ordinal: int, item: Any) -> bool | None:
        raise ProcessorError(
            f"{describe(type(self))} got an item on inbound edge {ordinal} but defines neither "
            f"try_process_{ordinal} nor try_process_any"
        )

    def try_process_0(self, item: Any) -> bool | None:
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
        """Emits from a traverser until the outbox is full. True once all is emitted; else call
        again with the same one.

        Make the traverser once and keep it: it remembers how far it got.
        """
        if not isinstance(traverser, Iterator):
            raise ProcessorError(
                f"emit_cooperatively of {describe(type(self))} needs a traverser that remembers "
                "how far it got; got "
                f"{shorten(traverser)}. Make one with traverse(...), once, and keep it for the "
                "calls that follow"
            )
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
            if is_slow or len(items) == room:
                self._emitted_at_once = count
            if len(items) < room:
                return True
            if is_slow:
                return False

    def keep_steady_pace(self) -> None:
        """From now on, the clock does not decide how much is emitted at a time: a task that is run
        again must do the same in the same order."""
        self._is_steady = True

    def flat_mapper(self, function: Callable[[Any], Traverser[Any] | Iterable[Any]]) -> FlatMapper:
        """Maps each item to any number of items once, and emits them over as many calls as it
        takes."""
        return FlatMapper(self, function)

    def failed_at(self, inbox: Inbox) -> FailedAt:
        return FailedAt(item=self._failed_item if self._holding_item else inbox.peek())

    def _try_method(self, ordinal: int) -> Callable[[Any], bool | None]:
        if ordinal < len(_TRY_NAMES):
            method: Callable[[Any], bool | None] = getattr(self, _TRY_NAMES[ordinal])
            return method
        return lambda item: self.try_process_any(ordinal, item)


class FlatMapper:
    """Made by `AbstractProcessor.flat_mapper`. Call it, or its `try_process`, from `try_process_N`
    and return what it returns."""

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
            if type(made) is list or type(made) is tuple:  # all of it is there already
                outbox = self._processor.outbox
                if len(made) <= outbox.room():
                    outbox.add_all(made)
                    return True
            self._rest = iterate(made, self._function)
        if not self._processor.emit_cooperatively(self._rest):
            return False
        self._rest = None
        return True

    __call__ = try_process


_TRY_NAMES: tuple[str, ...] = tuple(f"try_process_{ordinal}" for ordinal in range(5))
_CHUNK = 1024
_LONG_ENOUGH = 0.001
"""Seconds after which emitting should let others have their turn."""


def wrong_answer(method: Callable[..., Any], answer: object) -> ProcessorError:
    return ProcessorError(
        f"return value of {describe(method)} must be a bool or None; got {shorten(answer)}"
    )
