"""LogLine: a line of the log of a run; LogLines: the last lines that this process has logged."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final

from pyrite.functions import shorten, shorten_text
from pyrite.whereabouts import Whereabouts, whereabouts

LINES_KEPT: Final = 5000
LONGEST_MESSAGE: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    n: int
    """Its number in the log. The numbers rise; some may be missing."""
    time: float
    level: str
    logger: str
    message: str
    vertex: str | None = None
    execution: str | None = None
    """The run that it is about; None if that is not known."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> LogLine:
        return cls(
            n=int(found["n"]),
            time=float(found["time"]),
            level=str(found["level"]),
            logger=str(found["logger"]),
            message=str(found["message"]),
            vertex=found.get("vertex"),
            execution=found.get("execution"),
        )


class LogLines:
    """Keeps what is logged from now on, until it is closed: by the logger `pyrite` and those below
    it, and by any other one in a function of a job. It is one list for all runs of the process;
    `of` finds the lines of one of them.

    It is no handler: with one, Python would not print warnings to stderr any more, and
    `logging.basicConfig` would do nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        """A thread may log while it logs: garbage collection and signals call functions of the
        user at any moment."""
        self._lines: deque[LogLine] = deque(maxlen=LINES_KEPT)
        self._next = 0
        self._is_closed = False
        self._before = logging.getLogRecordFactory()
        logging.setLogRecordFactory(self._made)

    def of(
        self, execution: str, since: float, until: float | None, after: int
    ) -> tuple[list[LogLine], int]:
        """The lines from number `after` that are about the run; and those that are not known to be
        about another run, and were logged while it ran. And the number to go on from."""
        with self._lock:
            next = self._next
            first = next - len(self._lines)
            lines = list(islice(self._lines, max(0, after - first), None))
        found = [
            line
            for line in lines
            if line.execution == execution
            or (
                line.execution is None
                and line.time >= since
                and (until is None or line.time <= until)
            )
        ]
        if after < first and lines[0].time > since:
            found.insert(0, _missing(first - 1, lines[0].time))
        return found, next

    def close(self) -> None:
        self._is_closed = True
        if logging.getLogRecordFactory() == self._made:  # else someone has put another before it
            logging.setLogRecordFactory(self._before)

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    def _made(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._before(*args, **kwargs)
        about = whereabouts()
        if not self._is_closed and (about is not None or _is_own(record.name)):
            self._keep(record, about)
        return record

    def _keep(self, record: logging.LogRecord, about: Whereabouts | None) -> None:
        try:
            message = _FORMATTER.format(record)  # with the traceback, if there is one
        except Exception:  # logging itself says so, if there is a handler
            message = f"{shorten(record.msg)} % {shorten(record.args)}"
        record.exc_text = None  # other formatters have their own tracebacks
        with self._lock:
            n = self._next
            self._next += 1
            self._lines.append(
                LogLine(
                    n=n,
                    time=record.created,
                    level=record.levelname,
                    logger=record.name,
                    message=shorten_text(message, LONGEST_MESSAGE),
                    vertex=None if about is None else about.vertex,
                    execution=None if about is None else about.execution,
                )
            )


_FORMATTER: Final = logging.Formatter()


def _missing(n: int, time: float) -> LogLine:
    return LogLine(
        n=n,
        time=time,
        level="WARNING",
        logger=__name__,
        message=f"lines are missing here: only the last {LINES_KEPT} of this process are kept",
    )


def _is_own(logger: str | None) -> bool:
    return logger is not None and (logger == "pyrite" or logger.startswith("pyrite."))
