"""What the processors of executions add: written by a thread of its own, in large steps.

A commit costs as much as some hundred rows, and processors add some dozens at a time. The thread
writes at once whatever there is, so the steps get large only where much is added.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import AbstractContextManager
from sqlite3 import Connection
from typing import Final

from pyrite.durable.collections.access import FileAccess
from pyrite.durable.collections.tables import Added, add
from pyrite.forks import repair_after_fork

MOST_IN_A_STEP: Final = 1 << 20
MOST_HELD: Final = 8 << 20
"""Bytes, of which each row takes some besides its own. Whoever adds more than this waits."""
PER_ROW: Final = 200


class Line:
    """All additions that are not yet written, in their order. Its thread runs while there are
    any."""

    def __init__(self, file: FileAccess) -> None:
        self._file = file
        self._start_empty()
        repair_after_fork(self)

    def _start_empty(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[BehindAccess, Added, int]] = deque()
        self._held = 0
        self._is_writing = False
        self._thread: threading.Thread | None = None

    after_fork = _start_empty

    def add(self, writer: BehindAccess, added: Added) -> None:
        weight = _weight(added)
        with self._changed:
            self._changed.wait_for(lambda: self._held < MOST_HELD)
            self._held += weight
            writer.owed += 1
            self._waiting.append((writer, added, weight))
            if not self._is_writing:
                self._is_writing = True
                self._thread = threading.Thread(
                    target=self._write_all, name="pyrite-collections", daemon=True
                )
                self._thread.start()

    def wait_for(self, writer: BehindAccess) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not writer.owed)

    def close(self) -> None:
        """Waits for all that was added. Of an execution that was stopped, nobody has."""
        with self._changed:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _write_all(self) -> None:
        while step := self._next_step():
            error: Exception | None = None
            try:
                self._write([added for _, added, _ in step])
            except Exception as raised:
                error = raised
            with self._changed:
                for writer, _, weight in step:
                    self._held -= weight
                    writer.owed -= 1
                    writer.error = writer.error or error
                self._changed.notify_all()

    def _next_step(self) -> list[tuple[BehindAccess, Added, int]]:
        with self._changed:
            step = []
            room = MOST_IN_A_STEP
            while self._waiting and room > 0:
                step.append(self._waiting.popleft())
                room -= step[-1][2]
            self._is_writing = bool(step)
            return step

    def _write(self, step: list[Added]) -> None:
        names = {added.of for added in step}
        with self._file.writing(names.pop() if len(names) == 1 else "the maps and lists") as rows:
            for added in step:
                add(rows, added)


class BehindAccess:
    """The file as one execution uses it: what it reads comes after what it added."""

    def __init__(self, file: FileAccess, line: Line) -> None:
        self._file = file
        self._line = line
        self.owed = 0
        """How many additions are not yet written."""
        self.error: Exception | None = None

    def reading(self, of: str) -> AbstractContextManager[Connection]:
        self.flush()
        return self._file.reading(of)

    def writing(self, of: str) -> AbstractContextManager[Connection]:
        self.flush()
        return self._file.writing(of)

    def add(self, added: Added) -> None:
        """Raises, maybe later, if that failed."""
        self._check()
        self._line.add(self, added)

    def flush(self) -> None:
        """Waits until everything is written. Raises if anything failed."""
        self._line.wait_for(self)
        self._check()

    def _check(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error


def _weight(added: Added) -> int:
    size = PER_ROW * len(added.data)
    if added.kind == "map":
        return size + sum(len(field) + len(entry) for field, entry in added.data)
    return size + sum(map(len, added.data))
