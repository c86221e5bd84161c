"""Deployments: the durable jobs of a folder, or of servers at a URL. Each is a source of runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, TypeVar

from pyrite.durable.client.overview import JobRow
from pyrite.durable.client.watching import DeploymentView
from pyrite.durable.hosts.watching import NoAnswer, Watcher
from pyrite.durable.store.deployment import hidden
from pyrite.durable.store.store import StoreError
from pyrite.errors import PyriteError
from pyrite.watching.history import ALL, History, HistoryDocument
from pyrite.watching.log_lines import LogLine
from pyrite.watching.rates import Rates
from pyrite.watching.rows import RunRow, first_line
from pyrite.watching.views import RunState, RunView

logger = logging.getLogger("pyrite.ui")

T = TypeVar("T")

PATIENCE_SECONDS: Final = 3.0
"""A page does not wait longer for a server."""
PROBE_SECONDS: Final = 10.0
"""For one that did not answer nobody waits, as a list of runs has other sources, too, until a
request in the background is answered. Such a request is made after so long, if someone looks."""
CLOSING_SECONDS: Final = 0.5
FOLLOWED: Final = 100
FRESH_SECONDS: Final = 0.5
"""What was read within this time is not read again: several pages may be open."""
POINT_SECONDS: Final = 0.8
"""Between two points of the history, however many pages are open."""
VIEWS_OF_A_LIST: Final = 20
"""Counts of items take a request for each job, so a list has them for the newest alone."""


class Deployment:
    """Is a RunSource. It connects when someone looks for the first time."""

    def __init__(self, key: str, place: str) -> None:
        self.key = key
        self.place = place
        self.label = hidden(place)
        self._watcher = Watcher(place, patience=PATIENCE_SECONDS)
        self._is_silent = False
        self._probe: Future[object] | None = None
        self._probe_at = 0.0
        self._lock = threading.Lock()
        self._seen: DeploymentView | None = None
        self._rows: list[RunRow] = []
        self._ended: dict[str, RunRow] = {}
        self._followed: dict[str, tuple[Rates, History]] = {}
        """Of the jobs that someone looks at."""

    def document(self) -> dict[str, Any]:
        return {**self._view().to_json(), "key": self.key, "label": self.label}

    def rows(self) -> list[RunRow]:
        """Those that were seen last, if the store cannot be reached now."""
        try:
            self._rows = self._read_rows()
        except Exception as error:  # a damaged store must not hide the runs of other sources
            self._explain(error)
        return self._rows

    def view(self, id: str) -> RunView | None:
        """Raises PyriteError if it was or may be here, and the store cannot be reached now."""
        try:
            found = self._asked(lambda: self._watcher.job(id))
        except Exception as error:
            self._explain(error)
            is_here = isinstance(error, StoreError) and self._has_seen(id)
            if is_here or isinstance(error, NoAnswer):
                raise
            return None
        with self._lock:
            rates, history = self._followed.setdefault(id, (Rates(), History()))
            found = rates.added_to(found)
            if found.seen - history.last > POINT_SECONDS:
                history.add(found)
            while len(self._followed) > FOLLOWED:
                del self._followed[next(iter(self._followed))]
        return found

    def history(self, id: str, after: float = ALL) -> HistoryDocument:
        with self._lock:
            found = self._followed.get(id)
            return {} if found is None else found[1].to_json(after)

    def log(self, id: str, after: int = 0) -> list[LogLine]:
        return []  # the peers of a deployment write their logs elsewhere

    def cancel(self, id: str) -> bool:
        self._asked(lambda: self._watcher.cancel(id))
        return True

    def close(self) -> None:
        self._watcher.close(seconds=CLOSING_SECONDS)

    def _asked(self, ask: Callable[[], T]) -> T:
        if self._is_silent:
            self._look_for_answer()
            raise NoAnswer(f"{self.label} does not answer")
        try:
            return ask()
        except NoAnswer:
            with self._lock:
                if not self._is_silent:  # else another who has waited was first
                    self._is_silent = True
                    self._probe_at = time.monotonic() + PROBE_SECONDS
            raise

    def _look_for_answer(self) -> None:
        with self._lock:
            is_waiting = self._probe is not None and not self._probe.done()
            if is_waiting or time.monotonic() < self._probe_at:
                return
            self._probe_at = time.monotonic() + PROBE_SECONDS
            probe = self._probe = self._watcher.look_for_answer()
        probe.add_done_callback(self._on_answer)

    def _on_answer(self, probe: Future[object]) -> None:
        if not probe.cancelled() and probe.exception() is None:
            self._is_silent = False

    def _has_seen(self, id: str) -> bool:
        return id in self._followed or any(row.id == id for row in self._rows)

    def _explain(self, error: Exception) -> None:
        if not isinstance(error, PyriteError | OSError):
            logger.debug("%s cannot be read", self.label, exc_info=error)

    def _view(self) -> DeploymentView:
        seen = self._seen
        if seen is None or time.time() - seen.seen > FRESH_SECONDS:
            seen = self._seen = self._asked(self._watcher.deployment)
        return seen

    def _read_rows(self) -> list[RunRow]:
        jobs = self._view().jobs
        rows, looks = [], 0
        for job in jobs:
            known = self._ended.get(job.id)
            if known is None and looks < VIEWS_OF_A_LIST:
                looks += 1
                view = self._asked(partial(self._watcher.job, job.id))
                known = RunRow.of(view, can_cancel=True)
                if known.has_ended:
                    self._ended[job.id] = known
            rows.append(known or _plain(job))
        for id in self._ended.keys() - {job.id for job in jobs}:
            self._ended.pop(id, None)
        return rows


def _plain(job: JobRow) -> RunRow:
    submitted = job.submitted or 0.0
    until = job.ended if job.has_ended else time.time()
    return RunRow(
        id=job.id,
        name=job.name or job.id,
        kind="durable",
        state=_STATES.get(job.status, "running"),
        submitted=submitted,
        ended=job.ended,
        seconds=max(0.0, (until or submitted) - submitted),
        failure=None if job.failure is None else first_line(job.failure),
        can_cancel=not job.has_ended,
    )


_STATES: Final[dict[str, RunState]] = {
    "starting": "starting",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
