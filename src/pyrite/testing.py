"""A test harness for processors: calls a processor in all the ways that the engine may call it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import cloudpickle

from pyrite.boxes import Inbox, Outbox
from pyrite.collections import MemoryCollections
from pyrite.context import MetaSupplierContext, ProcessorContext, SupplierContext
from pyrite.functions import describe, shorten
from pyrite.processor import Processor
from pyrite.processors.loops.steps import Commit, WriteStep
from pyrite.suppliers import check_processors, meta_supplier_of, suppliers_by_member

MOST_CALLS_WITHOUT_PROGRESS = 10_000
LONGEST_WAIT = 1.0
"""How many seconds a processor that waits for another thread is not called, if it is not woken."""

ItemsByOrdinal = Sequence[Any] | Mapping[int, Sequence[Any]]


def verify_processor(
    supplier: Any,
    inputs: ItemsByOrdinal,
    expected: ItemsByOrdinal,
    *,
    any_order: bool = False,
    collections: MemoryCollections | None = None,
) -> None:
    """Raises AssertionError unless a processor turns `inputs` into `expected`, however it is
    called.

    `supplier` is any supplier that `dag.vertex` accepts. `inputs` is a list of items for the
    inbound edge at ordinal 0, or a dict from ordinal to such a list; `expected` is the same for the
    outbound edges. The processor is run with one item and with all items in its inbox, and with an
    outbox that has room and one that is full at every other call. If it saves its state, it is also
    run with the state saved and restored between calls.

    >>> from pyrite import processors as p
    >>> verify_processor(p.map(str.upper), ["a", "b"], ["A", "B"])
    """
    given = _by_ordinal(inputs)
    wanted = _by_ordinal(expected)
    edges = max(wanted, default=0) + 1
    wanted_lists = [list(wanted.get(ordinal, ())) for ordinal in range(edges)]
    for mode in _modes():
        trial = _Trial(supplier, wanted_lists, mode, collections or MemoryCollections())
        if mode.restores and not trial.saves_state:
            trial.abandon()
            continue
        emitted = trial.run(given)
        for ordinal, (found, want) in enumerate(zip(emitted, wanted_lists)):
            if not (_same_items(found, want) if any_order else found == want):
                raise AssertionError(
                    f"{describe(supplier)} emitted {shorten(found, 1000)} to edge {ordinal}; "
                    f"expected {shorten(want, 1000)}"
                    f"{' in any order' if any_order else ''}; {mode}"
                )


@dataclass(frozen=True, slots=True)
class _Mode:
    one_by_one: bool
    full_every_other_call: bool
    restores: bool

    def __str__(self) -> str:
        return (
            f"inbox of {'one item' if self.one_by_one else 'all items'}, outbox "
            f"{'full at every other call' if self.full_every_other_call else 'with room'}"
            f"{', state saved and restored between calls' if self.restores else ''}"
        )


def _modes() -> list[_Mode]:
    return [_Mode(*flags) for flags in itertools.product((False, True), repeat=3)]


class _Trial:
    """One run of one processor."""

    def __init__(
        self, supplier: Any, wanted: list[list[Any]], mode: _Mode, collections: MemoryCollections
    ) -> None:
        self._supplier = supplier
        self._mode = mode
        self._collections = collections
        self._wanted = wanted
        self._emitted: list[list[Any]] = [[] for _ in wanted]
        self._calls = 0
        self._idle_calls = 0
        self._came = threading.Event()
        self._processor, self._complete, self._close = self._new_processor()
        self.saves_state = self._processor.saves_state

    def abandon(self) -> None:
        self._close(None)

    def run(self, inputs: Mapping[int, Sequence[Any]]) -> list[list[Any]]:
        try:
            for ordinal in sorted(inputs):
                self._feed(ordinal, inputs[ordinal])
                complete_edge = partial(self._processor.complete_edge, ordinal)
                self._until_done(complete_edge, f"complete_edge({ordinal})")
            self._until_done(lambda: self._processor.complete(), "complete()")
            self._complete()
        except BaseException as error:
            self._close(error)
            raise
        self._close(None)
        return self._emitted

    def _feed(self, ordinal: int, items: Sequence[Any]) -> None:
        batches = (
            [[item] for item in items] if self._mode.one_by_one else [list(items)] if items else []
        )
        for batch in batches:
            inbox = Inbox(batch)
            self._until_done(lambda: self._processor.try_process(), "try_process()")
            while inbox:
                before = len(inbox)
                self._call(lambda inbox=inbox: self._processor.process(ordinal, inbox))  # type: ignore[misc]
                self._note_progress(len(inbox) < before, f"process({ordinal}, inbox)")
            self._restore()

    def _until_done(self, call: Callable[[], Any], name: str) -> None:
        while True:
            answer = self._call(call)
            if answer is not None and not isinstance(answer, bool):
                raise AssertionError(
                    f"{name} of {describe(self._supplier)} must return a bool or None; got "
                    f"{shorten(answer)}"
                )
            if answer is not False:
                return
            self._note_progress(False, name)
            if name != "try_process()":
                self._restore()

    def _call(self, call: Callable[[], Any]) -> Any:
        """Calls the processor, then drains its outbox. In one mode the high water mark is 0 at
        every other call, so that the outbox is full before the call."""
        if self._idle_calls and self._processor.is_waiting:
            self._came.wait(LONGEST_WAIT)
        self._came.clear()
        outbox = self._processor.outbox
        full = self._mode.full_every_other_call and self._calls % 2 == 0
        mark = 0 if full else 1 if self._mode.full_every_other_call else 2048
        outbox.high_water_marks[:] = [mark] * len(outbox.high_water_marks)
        self._calls += 1
        answer = call()
        for emitted, wanted, bucket in zip(self._emitted, self._wanted, outbox.buckets):
            if bucket:
                self._idle_calls = 0
            emitted += bucket
            bucket.clear()
            if len(emitted) > len(wanted):  # stop now, because it may emit for ever
                raise AssertionError(
                    f"{describe(self._supplier)} emitted more than the {len(wanted)} expected "
                    f"items: {shorten(emitted, 1000)}; {self._mode}"
                )
        return answer

    def _note_progress(self, progress: bool, name: str) -> None:
        self._idle_calls = 0 if progress else self._idle_calls + 1
        if self._idle_calls > MOST_CALLS_WITHOUT_PROGRESS:
            raise AssertionError(
                f"{name} of {describe(self._supplier)} was called {self._idle_calls} times, but it "
                f"did not take an item, emit an item or finish; {self._mode}"
            )

    def _restore(self) -> None:
        """Replaces the processor with a new one that gets the saved state."""
        if not self._mode.restores or not self._processor.can_save:
            return
        saved = cloudpickle.loads(cloudpickle.dumps(list(self._processor.save_snapshot())))
        self._close(None)
        self._processor, self._complete, self._close = self._new_processor()
        for key, value in saved:
            self._processor.restore_snapshot(key, value)

    def _new_processor(
        self,
    ) -> tuple[Processor, Callable[[], None], Callable[[BaseException | None], None]]:
        context: dict[str, Any] = {
            "vertex_name": "tested",
            "local_parallelism": 1,
            "member_count": 1,
            "job_id": "test",
            "execution_id": "test",
            "collections": self._collections,
        }
        meta_supplier = meta_supplier_of(self._supplier, "tested")
        meta_supplier.init(MetaSupplierContext(**context))
        (supplier,) = suppliers_by_member(meta_supplier, ["member-0"], "tested")
        supplier.init(SupplierContext(**context, member_index=0))
        processors = supplier.get(1)
        check_processors(processors, supplier, 1, "tested")
        (processor,) = processors
        step = getattr(self._supplier, "step", None)
        sink: Commit | None = None
        if isinstance(step, WriteStep) and step.commits:
            # The vertex has the name that its processor calls itself by.
            sink = step.begin(
                MetaSupplierContext(**{**context, "vertex_name": type(step).__name__})
            )

        def close(error: BaseException | None) -> None:
            for each in (processor, supplier, meta_supplier):
                each.close(error)
            if sink is not None:
                report = getattr(processor, "report", None)
                if error is None and report is not None:
                    sink.commit([report])
                    sink.seal()
                    sink.finish()
                else:
                    sink.discard()

        processor.attach(Outbox([2048] * len(self._emitted), "tested"))
        try:
            processor.init(
                ProcessorContext(**context, member_index=0, local_index=0, wake=self._came.set)
            )
        except BaseException as error:
            close(error)
            raise

        return processor, supplier.complete, close


def _by_ordinal(items: ItemsByOrdinal) -> dict[int, list[Any]]:
    if isinstance(items, Mapping):
        return {ordinal: list(each) for ordinal, each in items.items()}
    return {0: list(items)}


def _same_items(found: list[Any], wanted: list[Any]) -> bool:
    """Whether two lists have equal items in any order. The items need not be hashable."""
    rest = list(wanted)
    for item in found:
        try:
            rest.remove(item)
        except ValueError:
            return False
    return not rest
