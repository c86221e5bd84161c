"""The lines that a process has logged: keeping them changes nothing for those who log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from pyrite.watching import log_lines
from pyrite.watching.log_lines import LogLines

logger = logging.getLogger("pyrite.test")


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[LogLines]:
    monkeypatch.setattr(log_lines, "LINES_KEPT", 5)
    kept = LogLines()
    yield kept
    kept.close()


class _Bad:
    def __str__(self) -> str:
        raise ValueError("it has no text")


@pytest.mark.parametrize(("message", "arguments"), [(_Bad(), ()), ("%s", (_Bad(),)), ("%d", "x")])
def test_a_message_that_cannot_be_formatted_raises_nothing(
    lines: LogLines, message: object, arguments: tuple[object, ...]
) -> None:
    record = logging.getLogRecordFactory()(
        "pyrite.test", logging.INFO, __file__, 1, message, arguments, None
    )
    assert record.msg is message
    assert len(lines.of("run", 0.0, None, 0)[0]) == 1


def test_a_thread_may_log_while_it_logs(lines: LogLines) -> None:
    """As a `__del__` does that the garbage collector calls."""

    def log() -> None:
        with lines._lock:
            logger.warning("inner")

    thread = threading.Thread(target=log, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()


def test_each_line_is_read_once(lines: LogLines) -> None:
    logger.warning("one")
    first, go_on = lines.of("run", 0.0, None, 0)
    logger.warning("two")
    second, go_on = lines.of("run", 0.0, None, go_on)
    assert [line.message for line in first + second] == ["one", "two"]
    assert lines.of("run", 0.0, None, go_on) == ([], 2)


def test_lines_that_are_no_longer_kept_are_said_to_be_missing(lines: LogLines) -> None:
    for n in range(8):
        logger.warning("%d", n)
    found, go_on = lines.of("run", 0.0, None, 1)
    assert "lines are missing here" in found[0].message
    assert [line.message for line in found[1:]] == ["3", "4", "5", "6", "7"]
    assert [line.n for line in found] == [2, 3, 4, 5, 6, 7]
    assert go_on == 8
    newest = found[-1]
    assert lines.of("later", newest.time, None, 0)[0] == [
        line for line in found[1:] if line.time == newest.time
    ]
