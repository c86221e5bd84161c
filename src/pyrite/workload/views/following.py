"""Follows the output of a job while the job runs, through all of its attempts."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.cleanup_queue import end_of, read_records
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.store import Store

PAUSE_SECONDS = 0.1
PIECE_BYTES = 1 << 20


class Piece(NamedTuple):
    """Some text that an attempt of a job has written."""

    attempt: int
    text: str


def follow(
    store: Store,
    number: int,
    look: Callable[[], Entry],
    has_ended: Callable[[], bool],
    *,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Piece]:
    """The output of a job until the job or the run has ended. `look` returns the entry of the job,
    `has_ended` whether the run has ended."""
    tail: _Tail | None = None
    while True:
        is_last = has_ended()  # asked first, so that the entry below is final if it is true
        entry = look()
        if entry.segment is not None and _has_output(entry):
            if tail is None or not tail.is_of(entry):
                if tail is not None:
                    yield from tail.read()  # the earlier attempt has ended since the last look
                tail = _Tail(store, number, entry)
            yield from tail.read(None if entry.state is JobState.RUNNING else entry.log_end)
        if is_last or entry.state.has_ended:
            return
        pause(PAUSE_SECONDS)


def _has_output(entry: Entry) -> bool:
    """Whether the place of the output in the entry is of an attempt that runs or has ended, not of
    an earlier run."""
    return entry.state is JobState.RUNNING or entry.state.has_ended or entry.ended is not None


class _Tail:
    """The output of one attempt in the log of its worker, where the output of the worker's other
    jobs is too."""

    def __init__(self, store: Store, number: int, entry: Entry) -> None:
        assert entry.segment is not None
        self._job = (number, entry.attempt)
        self._place = (entry.segment, entry.attempt)
        self._log: Path = store.log(entry.segment)
        self._segment: Path = store.segment(entry.segment)
        self._scanned = 0
        self._position = entry.log_start
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def is_of(self, entry: Entry) -> bool:
        return self._place == (entry.segment, entry.attempt)

    def read(self, end: int | None = None) -> Iterator[Piece]:
        """What the attempt has written since the last call, up to the position `end`.

        While the attempt runs, its end is not known. A worker adds the record of an attempt to its
        segment before it starts the next job. So if the size of the log is taken first, and there
        is no record then, all of the log is of this attempt.
        """
        if end is None:
            size = self._log.stat().st_size if self._log.exists() else 0
            recorded = self._recorded_end()
            end = size if recorded is None else min(size, recorded)
        if end <= self._position or not self._log.exists():
            return
        with open(self._log, "rb") as file:
            file.seek(self._position)
            while data := file.read(min(PIECE_BYTES, end - self._position)):
                self._position += len(data)
                yield Piece(self._job[1], self._decoder.decode(data))

    def _recorded_end(self) -> int | None:
        if not self._segment.exists():
            return None
        for record in read_records(self._segment, self._scanned):
            if (record.job, record.attempt) == self._job:
                return record.log_end
            self._scanned = end_of(record)
        return None
