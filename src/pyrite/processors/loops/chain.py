"""A chain: the steps of one vertex, or of several vertices in a row, which one processor runs.

A ready-made processor is a `StepSupplier`. The engine may fuse the steps of several vertices that
local edges connect into one `Chain`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from threading import get_ident
from time import perf_counter
from types import CoroutineType, FrameType
from typing import IO, TYPE_CHECKING, Any, NoReturn

from pyrite.bad_records import DeadLetter, Handler, with_text
from pyrite.boxes import Inbox, Outbox
from pyrite.context import ProcessorContext
from pyrite.errors import ProcessorError
from pyrite.pace import Pace
from pyrite.partitioning import InvalidKey
from pyrite.processor import FailedAt
from pyrite.processors.groups.held import about_bytes
from pyrite.processors.groups.spill import Memory, Spill, Unlimited, batches_of
from pyrite.processors.loops.fused import FusedProcessor, Link, StepChain
from pyrite.processors.loops.loop import Failure, Guard, Loop, write_loop
from pyrite.processors.loops.passing import Passing
from pyrite.processors.loops.steps import (
    BadItem,
    Fold,
    ReadStep,
    Step,
    Transform,
    Writer,
    WriteStep,
)
from pyrite.weights import count_of, is_batch


@dataclass(frozen=True, slots=True)
class StepSupplier:
    """Makes processors that run one step. The engine may run the step as a part of a longer
    chain."""

    step: Step

    @property
    def absorbs_input(self) -> bool:
        """Whether its processors read all their input before they emit anything."""
        return self.step.absorbs_input

    if not TYPE_CHECKING:  # or a sink of any items would be a function that makes processors

        def __call__(self) -> FusedProcessor:
            link = Link(type(self.step).__name__, self.step)
            return chain_of([link], emits=True).processor()


def chain_of(links: Sequence[Link], *, emits: bool) -> StepChain:
    """The chain for steps in a row, which are all columnar or all not."""
    if links[0].step.columnar:
        from pyrite.processors.columns.chain import BatchChain

        return BatchChain(links, emits=emits)
    return Chain(links, emits=emits)


class Chain:
    """Steps in a row. Only the first may be a source, and only the last may be a fold or a sink.
    Many processors share one chain."""

    def __init__(self, links: Sequence[Link], *, emits: bool) -> None:
        self.links = tuple(links)
        first, last = links[0].step, links[-1].step
        self.source = first if isinstance(first, ReadStep) else None
        self.fold = last if isinstance(last, Fold) else None
        self.sink = last if isinstance(last, WriteStep) else None
        steps: list[tuple[str, Transform | Fold | Guard]] = []
        self._link_of_step: list[int] = []
        self._guards: list[bool] = []
        self._handled: dict[int, int] = {}
        """By step of the loop whose errors are handled, its link. Step -1 is the source."""
        for index, link in enumerate(links):
            if link.handling is not None and isinstance(link.step, ReadStep):
                self._handled[-1] = index
            if link.guard is not None:
                steps.append((link.vertex, link.guard))
                self._link_of_step.append(index)
                self._guards.append(True)
            if isinstance(link.step, (Transform, Fold)):
                if link.handling is not None:
                    self._handled[len(steps)] = index
                steps.append((link.vertex, link.step))
                self._link_of_step.append(index)
                self._guards.append(False)
        check_first = (
            links[0].vertex if self.source is not None and self.source.may_hold_none else None
        )
        emits = self.sink is not None or (emits and self.fold is None)
        self.is_bare = not steps and check_first is None and emits and not self._handled
        self._write = partial(
            write_loop,
            steps,
            emits=emits,
            check_first=check_first,
            handled={
                step: handling
                for step, link in self._handled.items()
                if (handling := links[link].handling) is not None
            },
        )
        self.loop: Loop = self._write()
        self.step_count = len(steps)
        self.may_block = any(link.step.may_block for link in links)

    def processor(self) -> ChainProcessor:
        return ChainProcessor(self)

    @cached_property
    def weighing_loop(self) -> Loop:
        """The loop for batches of rows: it counts rows."""
        return self._write(weighs=True)

    @cached_property
    def fold_loop(self) -> Loop:
        """The loop of the fold alone. It is for spilled items, which have already passed the other
        steps."""
        assert self.fold is not None
        handling = self.links[-1].handling
        handled = {} if handling is None else {0: handling}
        return write_loop(
            [(self.links[-1].vertex, self.fold)], emits=False, check_first=None, handled=handled
        )

    def handlers_by_step(self, handlers: Sequence[Handler | None]) -> list[Handler | None]:
        """The handlers of the links, in the order in which the loop takes them; empty if it takes
        none."""
        if not self._handled:
            return []
        by_step: list[Handler | None] = [None] * (self.step_count + 1)
        for step, link in self._handled.items():
            by_step[step] = handlers[link]
        return by_step

    def link_at(self, step: int) -> int:
        """The index of the link that a step of the loop belongs to. Step -1, the check of the input
        items, belongs to the first link; code that runs after the loop belongs to the last."""
        if step < 0:
            return 0
        return self._link_of_step[step] if step < len(self._link_of_step) else len(self.links) - 1

    def is_guard(self, step: int) -> bool:
        """Whether a step of the loop only checks the key of an edge."""
        return 0 <= step < len(self._guards) and self._guards[step]

    def emitted(
        self,
        received: int,
        counts: Sequence[int],
        results: int,
        unread: int = 0,
        *,
        counted: Collection[int],
    ) -> list[tuple[int, int]]:
        """The numbers of items that each vertex received and emitted, from the counts of the loop,
        which has counted these steps. `unread` of what the source had were bad records."""
        numbers = []
        position = 0
        for link in self.links:
            position += link.guard is not None
            emitted = received
            if isinstance(link.step, (Transform, Fold)):
                if position in counted:
                    emitted = counts[position]
                position += 1
            if isinstance(link.step, Fold):
                emitted = results
            elif isinstance(link.step, WriteStep):
                emitted = 0
            elif isinstance(link.step, ReadStep):
                emitted -= unread
            numbers.append((0 if isinstance(link.step, ReadStep) else received, emitted))
            received = emitted
        return numbers


class ChainProcessor(FusedProcessor):
    """Runs a chain: takes batches of items from the inbox or the source, and emits the results."""

    def __init__(self, chain: Chain) -> None:
        self.chain: Chain = chain
        self.cooperative = not chain.may_block
        self._loop = chain.loop
        self._run = chain.loop.run
        self._pauses = chain.loop.pauses
        self._counts = [0] * chain.step_count
        self._received = 0
        self._passing: Passing | None = None
        """The loop that runs now."""
        self._result_count = 0
        self._state: Any = None
        self._results: list[Any] | None = None
        self._items: Iterator[Any] | None = None
        self._batch: list[Any] = []
        self._reads_one = chain.source is not None and chain.source.heavy
        self._paused: Iterator[None] | None = None
        self._writer: Writer | None = None
        self.pace: Pace = Pace()
        self._spill: Spill | Unlimited = Unlimited()
        self._memory: Memory | None = None
        self._spilled: list[tuple[IO[bytes], int]] = []
        self._stopped: list[bool] = []
        """Not empty if nobody needs any more items of the source."""
        self._stops: list[list[bool]] = []
        self._failure: Failure | None = None
        self._link_at_work = 0
        self._out: list[Any] = []
        self._handlers: Sequence[Handler | None] = ()
        self._check: Callable[[Any], object] | None = None
        """Checks the items before they are written, if errors of the sink are handled."""
        self._bad: Sequence[Handler | None] = ()
        self._has_text_letters = chain.sink is not None and chain.sink.takes_text_letters

    def handle_errors(self, handlers: Sequence[Handler | None]) -> None:
        """Gives the processor a handler for each link, or None. Called before the first item."""
        self._handlers = handlers
        self._bad = self.chain.handlers_by_step(handlers)
        if self.chain.sink is not None and handlers[-1] is not None:
            self._check = self.chain.sink.checker(self.chain.links[-1].vertex)
        if self._bad:
            self._run = partial(self._loop.run, bad=self._bad)

    def _count_rows(self) -> None:
        """From now on: the items are batches of rows."""
        self._loop = self.chain.weighing_loop
        self._run = partial(self._loop.run, bad=self._bad) if self._bad else self._loop.run

    @property
    def is_waiting(self) -> bool:
        return any(handler is not None and handler.is_waiting for handler in self._handlers)

    @property
    def polls(self) -> bool:  # type: ignore[override]
        return self.is_waiting

    def attach(self, outbox: Outbox) -> None:
        super().attach(outbox)
        # With one outbound edge the loop appends to the bucket directly. Otherwise it appends to
        # its own list, which is then copied to all buckets or passed to the writer.
        if len(outbox.buckets) == 1 and self.chain.sink is None:
            self._out = outbox.buckets[0]

    def init(self, context: ProcessorContext) -> None:
        chain = self.chain
        if chain.fold is not None:
            self._link_at_work = -1
            self._state = chain.fold.new_state()
            self._link_at_work = 0
            if chain.fold.is_grouping and context.memory_budget is not None:
                self._memory = Memory(context.memory_budget)
                self._spill = Spill(self._memory)
            self._stops = [context.once(("stop", name), list) for name in chain.fold.stops]
        if chain.source is not None:
            self._items = chain.source.open(context)
            self._stopped = context.once(("stop", chain.links[0].vertex), list)
        if chain.sink is not None:
            self._link_at_work = -1
            self._writer = chain.sink.open(replace(context, vertex_name=chain.links[-1].vertex))
            self._link_at_work = 0

    def process(self, ordinal: int, inbox: Inbox) -> None:
        items = inbox.pending()
        taken = self._pass(items)
        inbox.remove(taken)
        if isinstance(self._spill, Spill):
            self._spill.watch(len(self._state))
        if self._stops:
            self._stop_if_full()

    def complete(self) -> bool:
        if self._items is not None and not self._read_on(self._items):
            return False
        self._link_at_work = -1
        if self._writer is not None:
            try:
                self.report = self._writer.complete()
            except BadItem as error:  # it had not been looked at before
                self._failure = Failure(self.chain.step_count, error.item, error)
                raise
        return self.chain.fold is None or self._emit_results(self.chain.fold)

    def close(self, error: BaseException | None) -> None:
        self._close_source()
        if self._writer is not None:
            self._writer.close()
        if isinstance(self._spill, Spill):
            self._spill.close()
        for file, _ in self._spilled:
            file.close()

    def end_partition(self) -> bool:
        """Emits all groups and frees them. The caller must know that no more of their items will
        come. Returns False if the outbox is full; then call it again."""
        fold = self.chain.fold
        assert fold is not None
        if not self._emit_results(fold):
            return False
        self._results = None
        self._state = fold.new_state()
        return True

    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        if self.chain.fold is None:
            return ()
        return (
            self._results[::-1] if self._results is not None else self.chain.fold.save(self._state)
        )

    def restore_snapshot(self, key: Any, value: Any) -> None:
        if self.chain.fold is not None:
            self.chain.fold.restore(self._state, key, value)

    @property
    def saves_state(self) -> bool:
        return self.chain.fold is not None

    def failed_at(self, inbox: Inbox) -> FailedAt:
        failure, links = self._failure, self.chain.links
        index = (
            self._link_at_work % len(links)
            if failure is None
            else self.chain.link_at(failure.index)
        )
        edge = f"'{links[index - 1].vertex} -> {links[index].vertex}'" if index else None
        if failure is None:
            return FailedAt(None, links[index].vertex, edge)
        if index and (isinstance(failure.error, InvalidKey) or self.chain.is_guard(failure.index)):
            index -= 1  # a bad key is a fault of the vertex that sends the item
        supplier = StepSupplier(links[index].step.without_secrets())
        return FailedAt(failure.item, links[index].vertex, edge, supplier, failure.is_result)

    def vertex_counts(self) -> list[tuple[int, int]]:
        """(received, emitted) of each vertex of the chain."""
        first = self._handlers[0] if self._handlers else None
        counts = self._counts_now()
        passing = self._passing  # first: when the loop has ended, its items are in _received
        return self.chain.emitted(
            self._received if passing is None else passing.received,
            counts,
            self._result_count,
            first.count if first else 0,
            counted=self._loop.counted,
        )

    def _counts_now(self) -> list[int]:
        """The counts, with those of the loop that runs. They belong together if the loop has not
        ended meanwhile."""
        for _ in range(100 if self._loop.counted else 0):
            passing, counts = self._passing, self._counts.copy()
            if passing is None:
                break
            more = passing.counted(self._loop, self._counts)
            if self._passing is passing and self._counts == counts:
                return [before + now for before, now in zip(counts, more)]
        return self._counts.copy()

    def vertex_at(self, frame: FrameType) -> str | None:
        if frame.f_code is not self._loop.run.__code__:
            return None
        place = self._loop.places[frame.f_lineno - 1]
        return self.chain.links[self.chain.link_at(place.index)].vertex

    def vertex_memory(self) -> list[tuple[int, int]]:
        others = [(0, 0)] * (len(self.chain.links) - 1)
        if self.chain.fold is None:
            return [*others, (0, 0)]
        state = self._state if self._state is not None else self._results
        return [*others, (about_bytes(state), 0 if self._memory is None else self._memory.spilled)]

    def _read_on(self, source: Iterator[Any]) -> bool:
        """Passes one batch of items from the source through the chain. Returns True when the source
        has ended."""
        started = perf_counter()
        if self._stopped:
            self._close_source()
            self._items = self._paused = None
            return True
        if not self._batch:
            self._batch = list(islice(source, 1))
            if self._batch and not self._reads_one and not is_batch(self._batch[0]):
                self._batch += islice(source, self.pace.limit - 1)
            if not self._batch:
                self._items = None
                return True
        taken = self._pass(self._batch)
        if taken == len(self._batch):
            self._batch = []
        elif taken:
            del self._batch[:taken]
        self.pace.took(taken, perf_counter() - started)
        if isinstance(self._spill, Spill):
            self._spill.watch(len(self._state))
        if self._stops:
            self._stop_if_full()
        return False

    def _stop_if_full(self) -> None:
        assert self.chain.fold is not None
        if self.chain.fold.is_full(self._state):
            for stopped in self._stops:
                stopped.append(True)

    def _close_source(self) -> None:
        close = getattr(self._items, "close", None)
        if close is not None:
            close()

    def _pass(self, items: list[Any]) -> int:
        """Passes items through the chain until the outbox is full. Returns how many it took."""
        outbox = self.outbox
        room = outbox.room()
        if room <= 0:
            return 0
        if not self._received and is_batch(items[0]):
            self._count_rows()
        if self._pauses:
            return self._pass_with_pauses(items, room)
        if room < len(items) and self.chain.fold is None:
            items = items[:room]
        out = self._out
        if self.chain.is_bare:
            out.extend(items)
        else:
            try:
                self._run(self._watched(items), out, room, self._counts, self._state, self._spill)
            except BaseException as error:
                self._raise_located(error)
        if not self._received and out and type(out[-1]) is CoroutineType:
            self._raise_not_awaited(out)
        self._received += count_of(items)
        self._passing = None
        self._deliver()
        return len(items)

    def _watched(self, items: list[Any]) -> Iterator[Any]:
        """The items for a loop, in which other threads see how far it is, at no cost."""
        iterator = iter(items)
        if not is_batch(items[0]):
            self._passing = Passing(self._received, len(items), iterator, get_ident())
        return iterator

    def _pass_with_pauses(self, items: list[Any], room: int) -> int:
        """Returns 0 until the loop has processed all items. Until then they stay in the inbox,
        because a snapshot of the state is only consistent between two batches."""
        if self._paused is None:
            self._paused = self._run(
                self._watched(items),
                self._out,
                len(self._out) + room,
                self._counts,
                self._state,
                self._spill,
            )
            if self._passing is not None:
                self._passing.generator = self._paused
        try:
            next(self._paused)
        except StopIteration:
            self._paused = None
            self._received += count_of(items)
            self._passing = None
            return len(items)
        except BaseException as error:
            self._raise_located(error)
        finally:
            self._deliver()
        return 0

    def _deliver(self) -> None:
        """Emits or writes the items that the loop appended to its own list."""
        out = self._out
        if not out:
            return
        if self._writer is not None:
            good = out if self._check is None else [item for item in out if self._can_write(item)]
            if self._has_text_letters and good and type(good[0]) is DeadLetter:
                good = list(map(with_text, good))
            try:
                if good:
                    self._writer.write(good)
            except BadItem as error:
                self._failure = Failure(self.chain.step_count, error.item, error)
                raise
            except BaseException as error:
                self._failure = Failure(self.chain.step_count, None, error)
                raise
            out.clear()  # not a new list: a paused loop continues to append to this one
        elif len(self.outbox.buckets) != 1:
            self.outbox.add_all(out)
            out.clear()

    def _can_write(self, item: Any) -> bool:
        handler = self._handlers[-1]
        assert self._check is not None
        assert handler is not None
        try:
            self._check(item)
        except BadItem as error:
            self._failure = Failure(self.chain.step_count, item, error)
            handler(item, error)
            self._failure = None
            return False
        return True

    def _emit_results(self, fold: Fold) -> bool:
        room = self.outbox.room()
        if room <= 0:
            return False
        if self._results is None:
            self._results = self._results_of(fold)
            # Results are removed from the end, which is cheap. A snapshot saves the ones left.
            self._results.reverse()
            self._state = None
        if fold.finishes:
            room = min(room, self.pace.limit)
        started = perf_counter()
        results = self._results[-room:][::-1]
        items = self._finished(fold, results) if fold.finishes else results
        self.outbox.add_all(items)
        self._result_count += len(items)
        del self._results[-room:]
        self.pace.took(len(items), perf_counter() - started)
        return not self._results and not self._group_spilled(fold)

    def _results_of(self, fold: Fold) -> list[Any]:
        try:
            return fold.results(self._state)
        except Exception as error:
            function = fold.late_function()
            if function is not None:
                for item in self._state:
                    try:
                        function(item)
                    except Exception:
                        self._failure = Failure(self.chain.step_count, item, error)
                        break
            raise

    def _finished(self, fold: Fold, results: list[Any]) -> list[Any]:
        handler = self._bad[-2] if self._bad else None
        if handler is not None:
            return self._finished_one_by_one(fold, results, handler)
        rest: Any = iter(results)
        try:
            return fold.finished(rest)
        except BaseException as error:
            at = len(results) - rest.__length_hint__() - 1
            self._failure = Failure(self.chain.step_count, results[at], error, is_result=True)
            raise

    def _finished_one_by_one(self, fold: Fold, results: list[Any], handler: Handler) -> list[Any]:
        """A result for which the user's function raises is a bad record itself."""
        items: list[Any] = []
        for result in results:
            try:
                items += fold.finished([result])
            except Exception as error:
                self._failure = Failure(self.chain.step_count, result, error)
                handler(result, error)
                self._failure = None
        return items

    def _group_spilled(self, fold: Fold) -> bool:
        """Groups the next file of spilled items, so that its groups are emitted next. Returns False
        if no file is left."""
        if not isinstance(self._spill, Spill) or self._memory is None:
            return False
        self._spilled += self._spill.parts()
        if not self._spilled:
            self._spill = Spill(self._memory)
            return False
        file, level = self._spilled.pop()
        self._spill = Spill(self._memory, level)
        self._state, self._results = fold.new_state(), None
        bad = {"bad": self._bad[-2:-1]} if self._bad and self._bad[-2] else {}
        for items in batches_of(file):
            try:
                self.chain.fold_loop.run(
                    items, [], 0, [0] * self.chain.step_count, self._state, self._spill, **bad
                )
            except BaseException as error:
                failure = self.chain.fold_loop.explain(error)
                self._failure = (
                    None if failure is None else replace(failure, index=self.chain.step_count)
                )
                raise
            self._spill.watch(len(self._state))
        return True

    def _raise_not_awaited(self, out: list[Any]) -> NoReturn:
        for each in out:
            if type(each) is CoroutineType:
                each.close()
        step = self.chain.step_count - 1
        error = ProcessorError(
            f"vertex '{self.chain.links[self.chain.link_at(step)].vertex}' emitted a coroutine, "
            "which nobody awaits; give map() an async def, or say in_flight=, or use map_async()"
        )
        self._failure = Failure(step, None, error)
        raise error

    def _raise_located(self, error: BaseException) -> NoReturn:
        self._failure = self._loop.explain(error)
        if self._passing is not None:
            self._passing.ends_at(self._loop, error)
        if self._failure is None or self._failure.error is error:
            raise error
        raise self._failure.error from None
