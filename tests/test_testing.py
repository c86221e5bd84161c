"""The harness finds the faults that it is there to find."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from pyrite import AbstractProcessor, Inbox, Processor, traverse
from pyrite import processors as p
from pyrite.testing import verify_processor


class Sum(AbstractProcessor):
    total = 0

    def try_process_0(self, item: int) -> None:
        self.total += item

    def complete(self) -> None:
        self.emit(self.total)


class Restarts(AbstractProcessor):
    """Makes its traverser anew at each call: wrong as soon as the outbox is full."""

    def complete(self) -> bool:
        return self.emit_cooperatively(traverse([1, 2, 3]))


class Forgets(Sum):
    """Has a state, and does not save all of it."""

    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        return []


class Saves(Sum):
    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        return [("total", self.total)]

    def restore_snapshot(self, key: Any, value: Any) -> None:
        self.total = value


class OneAtATime(Processor):
    """Loses all but the first item of an inbox."""

    def process(self, ordinal: int, inbox: Inbox) -> None:
        self.outbox.add(inbox.drain()[0])


class Stuck(Processor):
    def process(self, ordinal: int, inbox: Inbox) -> None:
        pass


class TwoEdges(AbstractProcessor):
    def try_process_any(self, ordinal: int, item: Any) -> None:
        self.emit(item, 1 - ordinal)


def test_good_processors_pass() -> None:
    verify_processor(Sum, [1, 2, 3], [6])
    verify_processor(Saves, [1, 2, 3], [6])
    verify_processor(lambda: Saves(), [], [0])
    verify_processor(TwoEdges, {0: ["a"], 1: ["b"]}, {0: ["b"], 1: ["a"]})


@pytest.mark.parametrize(
    ("supplier", "message"),
    [
        (Restarts, "emitted more than the 3 items expected.*outbox full at every other call"),
        (Forgets, r"emitted \[0\].*expected \[6\].*state saved and restored"),
        (OneAtATime, r"emitted \[1\] .*; inbox of all items"),
        (Stuck, "neither took an item, emitted one, nor finished"),
        (Sum, None),
    ],
)
def test_bad_processors_do_not(supplier: Any, message: str | None) -> None:
    expected: list[int] = [6] if supplier in (Sum, Forgets) else [1, 2, 3]
    if message is None:
        verify_processor(supplier, [1, 2, 3], expected)
        return
    with pytest.raises(AssertionError, match=message):
        verify_processor(supplier, [1, 2, 3] if supplier is not Restarts else [], expected)


def test_order_counts_unless_told_otherwise() -> None:
    with pytest.raises(AssertionError, match="expected"):
        verify_processor(p.noop(), [1, 2], [2, 1])
    verify_processor(p.noop(), [1, 2, [3]], [[3], 2, 1], any_order=True)
    with pytest.raises(AssertionError, match="in any order"):
        verify_processor(p.noop(), [1, 1], [1, 2], any_order=True)


def test_what_is_initialized_is_closed() -> None:
    events: list[str] = []

    class Counted(AbstractProcessor):
        def init(self, context: Any) -> None:
            events.append("init")

        def close(self, error: BaseException | None) -> None:
            events.append("close")

    verify_processor(Counted, [], [])
    assert events.count("init") == events.count("close") > 0


def test_files_that_are_written_are_committed(tmp_path: Any) -> None:
    verify_processor(p.write_files(tmp_path), ["a", "b"], [])
    assert [path.name for path in tmp_path.glob("part-*")] == ["part-00000.txt"]
    assert (tmp_path / "part-00000.txt").read_text() == "a\nb\n"
