"""Logs as JSON lines: one for each record, with the job, the execution and the vertex that it is
about."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import IO, Any, Final

from pyrite.closing import Closing
from pyrite.errors import PyriteError
from pyrite.functions import encodable, shorten
from pyrite.whereabouts import whereabouts

VARIABLE: Final = "PYRITE_LOG"


def json_logs(*, stream: IO[str] | None = None, level: int | str | None = None) -> JsonLogs:
    """Writes all that is logged in this process as JSON lines, to `stream` (by default stderr),
    until it is closed. What the program logs to stderr or stdout otherwise is written in this
    format, too. With `level`, only records from this level on, such as "INFO".

    A line has `time`, `level`, `logger`, `message`, `job`, `execution` and `vertex`; the last three
    are null if the record is not about a job. It also has what was given as `extra=`, and the
    traceback of an error as `exception`. A log line of your own function has its vertex.

    Set `PYRITE_LOG=json`, or start the command line with `--log-format json`, for the same.

    >>> import io, json, logging
    >>> from pyrite import telemetry
    >>> lines = io.StringIO()
    >>> with telemetry.json_logs(stream=lines):
    ...     logging.getLogger("shop").warning("%d orders", 3)
    >>> line = json.loads(lines.getvalue())
    >>> line["level"], line["logger"], line["message"], line["vertex"]
    ('WARNING', 'shop', '3 orders', None)
    """
    return JsonLogs(stream, level)


class JsonLogs(Closing):
    """Made by `pyrite.telemetry.json_logs()`."""

    def __init__(self, stream: IO[str] | None, level: int | str | None) -> None:
        root = logging.getLogger()
        self._changed: list[tuple[logging.Handler, logging.Formatter | None]] = []
        self._level: int | None = None
        if level is not None:
            self._level = root.level
            try:
                root.setLevel(level)
            except (ValueError, TypeError):
                raise PyriteError(
                    f"level of json_logs() must be a level of logging, such as 'INFO'; got "
                    f"{shorten(level)}"
                ) from None
        formatter = JsonLines()
        if stream is None:
            for handler in _handlers_of_streams(root):
                self._changed.append((handler, handler.formatter))
                handler.setFormatter(formatter)
        self._added: logging.Handler | None = None
        if not self._changed:
            self._added = logging.StreamHandler(stream) if stream is not None else _ToStderr()
            self._added.setFormatter(formatter)
            root.addHandler(self._added)

    def close(self) -> None:
        """Logs as before."""
        root = logging.getLogger()
        for handler, formatter in self._changed:
            handler.setFormatter(formatter)
        self._changed = []
        if self._added is not None:
            root.removeHandler(self._added)
            self._added = None
        if self._level is not None:
            root.setLevel(self._level)
            self._level = None


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        about = whereabouts()
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
            "job": None if about is None else about.job,
            "execution": None if about is None else about.execution,
            "vertex": None if about is None else about.vertex,
            "process": record.process,
            "thread": record.threadName,
        }
        line |= {
            f"extra_{key}" if key in _FIXED else key: value
            for key, value in vars(record).items()
            if key not in _STANDARD
        }
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["exception"] = record.exc_text
        if record.stack_info:
            line["stack"] = record.stack_info
        return _dumped(line)


def formatter(plain: str) -> logging.Formatter:
    """For a handler of its own: JSON lines if the variable `PYRITE_LOG` says so, else this."""
    return JsonLines() if wanted_format() == "json" else logging.Formatter(plain)


def from_environment() -> None:
    """Writes JSON lines if the variable `PYRITE_LOG` says so: until the end of the process. A
    second call changes nothing."""
    global _of_environment
    wanted = wanted_format()
    if wanted == "json" and _of_environment is None:
        _of_environment = json_logs()
    elif wanted not in ("", "json", "text") and wanted not in _warned:
        _warned.add(wanted)
        logging.getLogger("pyrite.telemetry").warning(
            "%s must be 'json' or 'text'; got %s", VARIABLE, shorten(wanted)
        )


def wanted_format() -> str:
    """What the variable says, which may be anything."""
    return os.environ.get(VARIABLE, "").strip().lower()


_of_environment: JsonLogs | None = None
_warned: set[str] = set()
_FIXED: Final = frozenset(("time", "level", "logger"))
_STANDARD: Final = frozenset(
    (*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "exc_text")
)


class _ToStderr(logging.StreamHandler[Any]):
    """Writes to what is stderr at that moment."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


def _handlers_of_streams(root: logging.Logger) -> list[logging.Handler]:
    streams = (sys.stderr, sys.stdout, sys.__stderr__, sys.__stdout__)
    return [
        handler
        for handler in root.handlers
        if isinstance(handler, logging.StreamHandler)
        and any(handler.stream is stream for stream in streams if stream is not None)
    ]


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # its arguments do not fit
        return f"{record.msg} {record.args}"


def _dumped(line: Mapping[str, Any]) -> str:
    try:
        return encodable(json.dumps(line, default=str, ensure_ascii=False, allow_nan=False))
    except Exception:  # keys that are no strings, something that refers to itself, or not a number
        return json.dumps({str(key): _plain(value) for key, value in line.items()})


def _plain(value: Any) -> str | int | None:
    return value if value is None or isinstance(value, str | int) else str(value)
