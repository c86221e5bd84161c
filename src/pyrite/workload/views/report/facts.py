"""What the report of a run is made from: plain data, read from the store once."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.cleanup_queue import read_error
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.store import Status, Store

FAILURES_SHOWN = 50
TEXT_BYTES = 20_000  # of the end of a log, and of a traceback

_TERMINAL_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)")


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed job, the end of its output, and its traceback. `bytes_before` is the size of the
    output that is left out."""

    row: dict[str, Any]
    log: str
    bytes_before: int
    traceback: str


@dataclass(frozen=True, slots=True)
class Facts:
    """`phase` is that of the run, or `killed`. `now` is when the facts were read."""

    store: Path
    phase: str
    status: Status
    rows: Sequence[dict[str, Any]]
    edges: Sequence[tuple[str, str]]
    failures: Sequence[Failure]
    critical_path: float
    now: float

    @property
    def is_running(self) -> bool:
        return self.phase in ("running", "starting")

    @property
    def end(self) -> float:
        """When the jobs ended that have no end: now, or the last time that is known of a run that
        was killed."""
        if self.is_running:
            return self.now
        times = [row[name] for row in self.rows for name in ("started", "ended") if row[name]]
        return max(times, default=self.now)


def facts_of(
    store: Store,
    status: Status,
    phase: str,
    rows: Sequence[dict[str, Any]],
    entries: Mapping[str, Entry],
    edges: Sequence[tuple[str, str]],
    critical_path: float,
) -> Facts:
    failed = [row for row in rows if row["state"].is_failure]
    return Facts(
        store=store.folder,
        phase=phase,
        status=status,
        rows=rows,
        edges=edges,
        failures=[_failure(store, row, entries[row["job"]]) for row in failed[:FAILURES_SHOWN]],
        critical_path=critical_path,
        now=time.time(),
    )


def _failure(store: Store, row: dict[str, Any], entry: Entry) -> Failure:
    log, before, traceback = "", 0, ""
    if entry.segment is not None:
        log, before = _end_of_log(store.log(entry.segment), entry.log_start, entry.log_end)
        if entry.state is JobState.FAILED and entry.offset is not None:
            traceback = _traceback(store.segment(entry.segment), entry.offset)
    return Failure(row, log, before, traceback)


def _end_of_log(path: Path, start: int, end: int) -> tuple[str, int]:
    first = max(start, end - TEXT_BYTES)
    try:
        with open(path, "rb") as file:
            file.seek(first)
            data = file.read(max(0, end - first))
    except OSError:
        return "", 0
    return plain(data.decode(errors="replace")), first - start


def _traceback(path: Path, offset: int) -> str:
    try:
        text = read_error(path, offset)[1]
    except OSError:
        return ""
    return plain(text if len(text) <= TEXT_BYTES else f"...\n{text[-TEXT_BYTES:]}")


def plain(text: str) -> str:
    """Text without the codes that set colours in a terminal.

    >>> plain("\\x1b[31mred\\x1b[0m")
    'red'
    """
    return _TERMINAL_CODES.sub("", text)
