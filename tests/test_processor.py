"""Inbox, outbox and AbstractProcessor keep their promises when called by hand."""

from __future__ import annotations

from typing import Any

import pytest

from pyrite import AbstractProcessor, Inbox, Outbox, Processor, ProcessorError, traverse
from pyrite.boxes import holds_none


def attached(processor: AbstractProcessor, *marks: int) -> AbstractProcessor:
    processor.attach(Outbox(marks, "v"))
    return processor


class Echo(AbstractProcessor):
    def try_process_any(self, ordinal: int, item: Any) -> None:
        self.emit((ordinal, item))


def test_an_inbox_gives_items_in_order_by_poll_iteration_and_drain() -> None:
    inbox = Inbox([1, 2, 3, 4])
    assert inbox.poll() == 1
    assert next(iter(inbox)) == 2
    assert inbox.drain() == [3, 4]
    assert (len(inbox), inbox.peek(), inbox.poll()) == (0, None, None)


def test_an_inbox_knows_the_item_that_was_taken_last() -> None:
    inbox = Inbox(["a", "b"])
    assert inbox.last_taken() == "a"
    inbox.poll()
    assert inbox.last_taken() == "a"
    inbox.extend(["c"])
    assert list(inbox) == ["b", "c"]


def test_a_bucket_is_full_at_its_high_water_mark_and_takes_more_all_the_same() -> None:
    outbox = Outbox([2], "v")
    outbox.add(1)
    assert not outbox.is_full()
    outbox.add_all([2, 3])
    assert outbox.is_full()
    assert outbox.buckets == [[1, 2, 3]]


def test_items_go_to_one_ordinal_or_to_all() -> None:
    processor = attached(Echo(), 9, 9)
    processor.emit("x", 1)
    processor.emit("y")
    assert processor.outbox.buckets == [["y"], ["x", "y"]]
    with pytest.raises(
        ProcessorError,
        match=r"vertex 'v' emitted to ordinal 2, but it has 2 outbound edges \(0 to 1\)",
    ):
        processor.emit("z", 2)


@pytest.mark.parametrize("marks", [(9,), (9, 9)])
def test_emitting_none_is_an_error_that_names_the_vertex(marks: tuple[int, ...]) -> None:
    processor = attached(Echo(), *marks)
    for emit in (
        lambda: processor.emit(None),
        lambda: processor.emit(None, 0),
        lambda: processor.outbox.add_all([1, None]),
    ):
        with pytest.raises(ProcessorError, match="vertex 'v' emitted None"):
            emit()
    assert not len(processor.outbox)


def test_none_is_found_among_items_whose_equality_lies() -> None:
    class Odd:
        def __init__(self, answer: Any) -> None:
            self.answer = answer

        def __eq__(self, other: object) -> bool:
            if isinstance(self.answer, Exception):
                raise self.answer
            return bool(self.answer)

        __hash__ = None  # type: ignore[assignment]

    assert not holds_none([Odd(True)])
    assert not holds_none([Odd(ValueError())])
    assert holds_none([Odd(ValueError()), None])


def test_each_ordinal_has_its_method_and_the_rest_go_to_any() -> None:
    class ByEdge(AbstractProcessor):
        def try_process_0(self, item: Any) -> None:
            self.emit(f"zero {item}")

        def try_process_any(self, ordinal: int, item: Any) -> None:
            self.emit(f"{ordinal}: {item}")

    processor = attached(ByEdge(), 99)
    for ordinal in (0, 1, 4, 5, 7):
        processor.process(ordinal, Inbox(["x"]))
    assert processor.outbox.buckets[0] == ["zero x", "1: x", "4: x", "5: x", "7: x"]


def test_an_item_is_taken_only_when_try_process_does_not_return_false() -> None:
    class Stubborn(AbstractProcessor):
        def try_process_0(self, item: Any) -> bool | None:
            return {1: True, 2: None, 3: False}[item]

    inbox = Inbox([1, 2, 3, 1])
    attached(Stubborn(), 9).process(0, inbox)
    assert list(inbox) == [3, 1]


def test_a_wrong_answer_is_an_error_that_names_the_method() -> None:
    class Wrong(AbstractProcessor):
        def try_process_0(self, item: Any) -> Any:
            return "yes"

    with pytest.raises(
        ProcessorError,
        match=r"try_process_0, test_processor.py line \d+> must be a bool or None; got 'yes'",
    ):
        attached(Wrong(), 9).process(0, Inbox([1]))


@pytest.mark.parametrize("marks", [(2,), (2, 5), (5, 2)])
def test_processing_stops_when_a_bucket_is_full(marks: tuple[int, ...]) -> None:
    inbox = Inbox(range(5))
    processor = attached(Echo(), *marks)
    processor.process(0, inbox)
    assert list(inbox) == [2, 3, 4]


def test_a_sink_takes_everything() -> None:
    inbox = Inbox(range(5000))
    attached(Echo()).process(0, inbox)
    assert not inbox


def test_items_on_an_edge_that_nothing_is_defined_for_are_an_error() -> None:
    with pytest.raises(
        ProcessorError,
        match="got an item on inbound edge 1 but defines neither try_process_1 nor try_process_any",
    ):
        attached(AbstractProcessor(), 9).process(1, Inbox([1]))
    with pytest.raises(ProcessorError, match="does not define process"):
        Processor().process(0, Inbox([1]))


def test_emit_cooperatively_resumes_where_it_stopped() -> None:
    processor = attached(Echo(), 3)
    rest = traverse(range(5))
    assert processor.emit_cooperatively(rest) is False
    assert processor.outbox.buckets[0] == [0, 1, 2]
    assert processor.emit_cooperatively(rest) is False
    processor.outbox.buckets[0].clear()
    assert processor.emit_cooperatively(rest) is True
    assert processor.outbox.buckets[0] == [3, 4]
    assert processor.emit_cooperatively(rest) is True


def test_emit_cooperatively_refuses_what_forgets_its_position() -> None:
    with pytest.raises(ProcessorError, match="Make one with traverse"):
        attached(Echo(), 3).emit_cooperatively([1, 2])  # type: ignore[arg-type]


def test_a_flat_mapper_maps_each_item_once_and_resumes() -> None:
    calls = []

    class Repeat(AbstractProcessor):
        def __init__(self) -> None:
            self.repeat = self.flat_mapper(self.times)

        def times(self, n: int) -> list[int]:
            calls.append(n)
            return [n] * n

        def try_process_0(self, item: int) -> bool:
            return self.repeat.try_process(item)

    processor = attached(Repeat(), 2)
    inbox, emitted = Inbox([3, 1, 0, 2]), []
    while inbox:
        processor.process(0, inbox)
        assert len(processor.outbox.buckets[0]) <= 2
        emitted += processor.outbox.buckets[0]
        processor.outbox.buckets[0].clear()
    assert emitted == [3, 3, 3, 1, 2, 2]
    assert calls == [3, 1, 0, 2]


def test_a_steady_processor_emits_the_same_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(1_000_000))  # a second passes between any two looks at it
    monkeypatch.setattr("pyrite.processor.perf_counter", lambda: next(clock))
    processor = attached(AbstractProcessor(), 10_000)
    processor.keep_steady_pace()
    assert processor.emit_cooperatively(traverse(range(5_000)))
    quick = attached(AbstractProcessor(), 10_000)
    assert not quick.emit_cooperatively(traverse(range(5_000)))


def test_a_flat_mapper_takes_a_list_at_once_and_the_rest_when_there_is_room() -> None:
    processor = attached(AbstractProcessor(), 5)
    mapper = processor.flat_mapper(lambda n: list(range(n)))
    assert mapper(3)
    assert not mapper(4)  # two of them fit
    assert processor.outbox.buckets == [[0, 1, 2, 0, 1]]
    processor.outbox.buckets[0].clear()
    assert mapper(4)
    assert processor.outbox.buckets == [[2, 3]]
