"""Recorder: watches the runs of this process, keeps what it saw, and writes it to the journal.

One thread looks at all runs about once a second. A run that has just ended is seen at the next
look, or when someone asks. Recording never fails a job and never waits for one.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyrite.closing import Closing
from pyrite.forks import repair_after_fork
from pyrite.job import Execution
from pyrite.watching.followed import PATIENCE_SECONDS, Followed
from pyrite.watching.history import ALL, HistoryDocument
from pyrite.watching.journal import Journal
from pyrite.watching.journal.pruning import prune
from pyrite.watching.journal.writing import JournalWriter
from pyrite.watching.log_lines import LogLine, LogLines
from pyrite.watching.observers import add_observer, remove_observer
from pyrite.watching.rows import RunRow
from pyrite.watching.views import RunView

logger = logging.getLogger("pyrite.watching")

LOOK_SECONDS: Final = 1.0
SHARE_OF_TIME: Final = 0.02
"""Of a core, at most; a look at a job of a thousand vertices takes long."""
LONGEST_PAUSE: Final = 10.0
ENDED_KEPT: Final = 1000
SHORT_PER_LOOK: Final = 50
"""Of short light jobs, so many are kept that have ended since the last look, the newest; thousands
may have run in a second, and a look at one takes as long as such a job."""
HISTORY_LOOKS: Final = 10
"""The history is large, so it is written less often."""
LOOKS_BETWEEN_PRUNING: Final = 3600
CLOSING_SECONDS: Final = 2.0
THREAD: Final = "pyrite-recorder"


class Recorder(Closing):
    """Is an Observer and a RunSource. Use `recorders.open_recorder`, which shares one among all who
    record to the same folder."""

    def __init__(self, folder: Path, *, is_quiet: bool = False) -> None:
        self.folder = folder
        self._journal = Journal(folder)
        self._is_quiet = is_quiet
        self.keeps_short = False
        """Whether short light jobs are written to the journal, too."""
        self._looking = threading.RLock()
        """Held while looking: views of a run are in the order of time."""
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._running: dict[str, Followed] = {}
        self._ended: OrderedDict[str, Followed] = OrderedDict()
        self._saved: OrderedDict[str, RunRow] = OrderedDict()
        """Those that have ended and are in the journal as they ended. All else is read there: the
        views and histories of a thousand large runs would take gigabytes."""
        self._lines = LogLines()
        self._thread: threading.Thread | None = None
        self._writer: JournalWriter | None = None
        self._has_warned = False
        self._begun = self._looks = 0
        self._is_closed = False
        add_observer(self)
        atexit.register(self.close)
        repair_after_fork(self)

    def began(self, execution: Execution) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._running[execution.id] = Followed(execution)
            self._begun += 1
            if self._begun % SHORT_PER_LOOK == 0:
                self._drop_short()  # not at the next look: until then, all would stay in memory
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=THREAD, daemon=True)
                self._thread.start()

    # A source of runs.

    def rows(self) -> list[RunRow]:
        self._settle()
        with self._lock:
            found = list(self._saved.values())
            others = [*self._running.values(), *self._ended.values()]
        found += [RunRow.of(each.view, can_cancel=True) for each in others]
        return sorted(found, key=lambda row: (row.submitted, row.id), reverse=True)

    def view(self, id: str) -> RunView | None:
        self._settle()
        found = self._find(id)
        if found is not None:
            return found.view
        return self._journal.view(id) if id in self._saved else None

    def history(self, id: str, after: float = ALL) -> HistoryDocument:
        found = self._find(id)
        if found is not None:
            return found.history.to_json(after)
        return self._journal.history(id, after) if id in self._saved else {}

    def log(self, id: str, after: int = 0) -> list[LogLine]:
        found = self._find(id)
        if found is not None:
            return self._lines_of(found, after)[0]
        return self._journal.log(id, after) if id in self._saved else []

    def cancel(self, id: str) -> bool:
        found = self._running.get(id)
        return found is not None and found.cancel()

    def close(self) -> None:
        """Looks once more, and stops. What still runs, as in another instance, is followed until
        it ends or the process does."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            thread, self._thread = self._thread, None
        remove_observer(self)
        self._wake.set()
        # Ctrl-C may have come before the thread was started.
        if thread is not None and thread.ident and thread is not threading.current_thread():
            thread.join(CLOSING_SECONDS)
        self.look()
        atexit.unregister(self.close)
        if self._running:
            atexit.register(self.look)
            threading.Thread(target=self._follow_to_end, name=THREAD, daemon=True).start()
        else:
            self._lines.close()

    def after_fork(self) -> None:
        """The child records its own runs alone; its thread starts with the first of them."""
        self._looking = threading.RLock()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._running, self._ended, self._saved = {}, OrderedDict(), OrderedDict()
        self._thread = self._writer = None
        self._lines.after_fork()

    def __repr__(self) -> str:
        return f"<recorder of runs in {self.folder}>"

    def look(self) -> None:
        """Takes the views of all runs now, and writes those to the journal that belong there. Does
        not wait long for another look, which may wait for a server that does not answer."""
        if self._looking.acquire(timeout=CLOSING_SECONDS):
            try:
                self._look()
            finally:
                self._looking.release()

    # On the recorder's thread.

    def _run(self) -> None:
        pause = LOOK_SECONDS
        while not self._wake.wait(pause):
            began = time.thread_time()
            self.look()
            took = time.thread_time() - began
            pause = min(LONGEST_PAUSE, max(LOOK_SECONDS, took / SHARE_OF_TIME))

    def _follow_to_end(self) -> None:
        ended = threading.Event()
        for run in list(self._running.values()):
            if run.execution is not None:
                run.execution.add_done_callback(lambda _: ended.set())
        while self._running:
            ended.wait(LOOK_SECONDS)
            ended.clear()
            self.look()
        self._lines.close()
        atexit.unregister(self.look)

    def _look(self) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        for each in self._newest():
            try:
                self._look_at(each, until)
            except Exception:  # the others are looked at all the same
                logger.warning("run %s could not be looked at", each.id, exc_info=True)
        self._looks += 1
        if self._writer is not None and self._looks % LOOKS_BETWEEN_PRUNING == 0:
            self._write(lambda: prune(self.folder))

    def _newest(self) -> list[Followed]:
        """The runs to look at."""
        with self._lock:
            self._drop_short()
            return list(self._running.values())

    def _drop_short(self) -> None:
        short = [id for id, each in self._running.items() if each.was_short]
        for id in short[:-SHORT_PER_LOOK]:
            del self._running[id]

    def _settle(self) -> None:
        """Sees those that have begun or ended since the last look."""
        with self._looking:
            until = time.monotonic() + PATIENCE_SECONDS
            for each in self._newest():
                if each.is_done or not each.looks:
                    self._look_at(each, until)

    def _look_at(self, run: Followed, until: float) -> None:
        """Waits for servers at most until then."""
        run.look(max(0.0, until - time.monotonic()))
        is_saved = False
        try:
            if self.keeps_short or run.belongs_in_journal:
                is_saved = self._write(lambda: self._record(run))
        finally:
            if run.execution is None:
                self._keep_ended(run, is_saved)

    def _keep_ended(self, run: Followed, is_saved: bool) -> None:
        with self._lock:
            self._running.pop(run.id, None)
            if is_saved:
                self._saved[run.id] = RunRow.of(run.view, can_cancel=False)
            else:
                self._ended[run.id] = run
            for kept in (self._saved, self._ended):
                while len(kept) > ENDED_KEPT:
                    kept.popitem(last=False)

    def _record(self, run: Followed) -> None:
        writer = self._writer
        if writer is None:
            writer = JournalWriter(self.folder)
            writer.write(run.view)
            self._writer = writer
            prune(self.folder)
        if run.execution is not None and writer.takes_cancel_request(run.id):
            run.cancel()
        lines, next_line = self._lines_of(run, run.next_line)
        writer.append_log(run.id, lines)
        run.next_line = next_line
        if run.execution is None or run.looks % HISTORY_LOOKS == 0:
            writer.write_history(run.id, run.history.to_json())
        writer.write(run.view)
        run.is_in_journal = True

    def _write(self, write: Callable[[], None]) -> bool:
        """Whether it was written."""
        try:
            write()
            return True
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                logger.log(
                    logging.DEBUG if self._is_quiet else logging.WARNING,
                    "runs cannot be recorded in '%s': %s; the jobs go on. To record elsewhere, set "
                    "PYRITE_RUNS to another folder",
                    self.folder,
                    error.strerror or error,
                )
            return False

    def _lines_of(self, run: Followed, after: int) -> tuple[list[LogLine], int]:
        return self._lines.of(run.id, run.view.submitted, run.view.ended, after)

    def _find(self, id: str) -> Followed | None:
        with self._lock:
            return self._running.get(id) or self._ended.get(id)
