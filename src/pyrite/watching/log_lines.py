"""LogLine: a line of the log of a run; LogLines: the last lines that this process has logged."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final

from pyrite.functions import shorten_text
from pyrite.whereabouts import whereabouts

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


class LogLines(logging.Handler):
    """Keeps what the logger `pyrite`, and those below it, have logged. It is one list for all runs
    of the process: `of` finds the lines of one of them."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[LogLine] = deque(maxlen=LINES_KEPT)
        self._next = 0

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)  # with the traceback, if there is one
        except Exception:
            text = str(record.msg)
        about = whereabouts()
        self._lines.append(
            LogLine(
                n=self._next,
                time=record.created,
                level=record.levelname,
                logger=record.name,
                message=shorten_text(text, LONGEST_MESSAGE),
                vertex=getattr(record, "vertex", about and about.vertex),
                execution=getattr(record, "execution", about and about.execution),
            )
        )
        self._next += 1

    @property
    def next(self) -> int:
        return self._next

    def of(self, execution: str, since: float, until: float | None, after: int) -> list[LogLine]:
        """The lines from number `after` that are about the run; and those that are not known to be
        about another run, and were logged while it ran."""
        self.acquire()
        try:
            skipped = max(0, after - (self._next - len(self._lines)))
            lines = list(islice(self._lines, skipped, None))
        finally:
            self.release()
        return [
            line
            for line in lines
            if line.execution == execution
            or (
                line.execution is None
                and line.time >= since
                and (until is None or line.time <= until)
            )
        ]
