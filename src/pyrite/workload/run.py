"""The handle of a run: waits for the run, reads its state and results, cancels it. A handle has no
state besides the store, so any process can make one."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

from pyrite import drawing
from pyrite.drawing.notebooks import DrawsItself
from pyrite.errors import PyriteError, RunBroken
from pyrite.functions import did_you_mean, shorten
from pyrite.workload.input.branches import GrowingPlan
from pyrite.workload.input.plan import Plan
from pyrite.workload.input.schedule import remaining_paths
from pyrite.workload.outcomes import COLORS, FailedJobs, NoResult, Results, cut_short, row_of
from pyrite.workload.progress import wait_with_progress
from pyrite.workload.resuming import begin_again
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.starting import Started
from pyrite.workload.storage.cleanup_queue import read_error, read_result
from pyrite.workload.storage.encoding import decode
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.journal_reading import (
    read_entries,
    read_entry,
    read_extensions,
    read_plan_number,
)
from pyrite.workload.storage.places import NoPlace, readers, result_places
from pyrite.workload.storage.pruning import Pruned, prune
from pyrite.workload.storage.store import Status, Store, last_line
from pyrite.workload.storage.temporary import remove_with
from pyrite.workload.views.documents import phase_of
from pyrite.workload.views.failures import raise_for_failures
from pyrite.workload.views.following import Piece, follow
from pyrite.workload.views.reasons import Reasons
from pyrite.workload.workers.running.replaying import replay

POLL_SECONDS = 0.1


class Run(DrawsItself):
    """A run of a workload. `Workload.run` returns one; `Run.attach` makes one from a store."""

    def __init__(self, store: str | os.PathLike[str], *, _started: Started | None = None) -> None:
        self._store = Store(store)
        self._store.check_exists()
        number = read_plan_number(self._store)
        if not number:
            status = self._store.status()
            why = "was killed, or failed, before it started"
            if status is not None and status.phase == "starting" and status.master.is_alive:
                why = "is still starting; try again in a moment"
            raise PyriteError(f"the run in '{self._store}' {why}")
        self._plan_number = number
        self._jobs = GrowingPlan(self._store.read_plan(number))
        self._last_status = self._stored_status()
        self._transient = _started.master if _started is not None else None
        self._session = self._last_status.session
        self._final: tuple[int, dict[str, Entry]] | None = None
        self._reasons = Reasons(self._store)
        if _started is not None and _started.process is not None:
            # Without this, the master would stay a zombie process if the user never waits for it.
            threading.Thread(
                target=_started.process.wait, name="workload master", daemon=True
            ).start()
        if _started is not None and _started.is_temporary:
            remove_with(self, self._store)

    @classmethod
    def of(cls, started: Started) -> Run:
        """The handle of a run that this process has started. If there can be none, as after Ctrl-C
        at this moment, the run is cancelled."""
        try:
            return cls(started.store.folder, _started=started)
        except BaseException:
            started.cancel()
            raise

    @classmethod
    def attach(cls, store: str | os.PathLike[str]) -> Run:
        """The run in a store, whether it is running, has ended, or is broken. Works in any
        process."""
        return cls(store)

    @classmethod
    def resume(cls, store: str | os.PathLike[str], **changes: Any) -> Run:
        """Continues a run that was cancelled, broken or killed. Jobs that have a result do not run
        again.

        `changes` are options of `Workload.run`, such as `workers`, with new values. The other
        options stay as they were; so do the working directory, `sys.path` and the umask of the
        process that started the run. The environment variables are those of this process. A run
        that had a `launcher` or an `executor` needs one again, because functions are not stored.
        """
        return cls.of(begin_again(Store(store), changes))

    @classmethod
    def prune(
        cls, store: str | os.PathLike[str], *, keep: int = 0, dry_run: bool = False
    ) -> Pruned:
        """Removes the results that the last run in a store does not use, with their files and logs.

        A store keeps the results of all workloads that ran in it, and of all versions of their
        jobs, until they are pruned. `keep` is the number of latest results of each job that stay,
        even if the last run does not use them. The results of a job that has not finished in the
        last run stay all. With `dry_run`, nothing is removed. Raises StoreInUse while a run uses
        the store.
        """
        return prune(Store(store), keep=keep, dry_run=dry_run)

    # State and results

    @property
    def store(self) -> Path:
        """The folder that has all data of the run."""
        return self._store.folder

    @property
    def status(self) -> Status:
        """The status of this run; if the store belongs to a newer run, the last known one."""
        found = self._stored_status()
        if found.run == self._last_status.run:
            self._last_status = found
        return self._last_status

    @property
    def pid(self) -> int:
        """The process id of the master."""
        return self.status.master.pid

    @property
    def has_ended(self) -> bool:
        """Whether the run has ended, was cancelled, or broke."""
        if self._is_mine:
            assert self._transient is not None
            return self._transient.has_ended
        status = self.status
        return status.has_ended or not status.master.is_alive or self._is_replaced

    def wait(self, timeout: float | None = None, *, progress: bool | None = None) -> Run:
        """Waits until every job has ended, and returns the run. Failed jobs are in `failed()`; they
        raise nothing here.

        Raises RunBroken if the run itself could not continue, and TimeoutError if it has not ended
        after `timeout` seconds. In a terminal, shows the progress if that takes more than a second;
        `progress` turns this on or off. Ctrl-C stops the waiting, not the run.
        """
        _check_timeout(timeout)
        if not wait_with_progress(
            self.wait_for_master,
            self.counts,
            started=self.status.started,
            timeout=timeout,
            progress=progress,
        ):
            raise TimeoutError(
                f"the run in '{self._store}' has not ended within {timeout:g} s; it continues"
            )
        status = self.status
        if status.phase == "broken":
            raise RunBroken(f"{status.problem}. To continue, call Run.resume('{self._store}')")
        if not status.has_ended:
            self._check_not_replaced()
            raise RunBroken(
                f"the master of the run in '{self._store}' was killed before all jobs had ended"
                f"{self._last_words()}; to continue, call Run.resume('{self._store}')"
            )
        return self

    def wait_for_master(self, seconds: float | None) -> bool:
        """Waits up to `seconds` for the master to end. Returns whether it has ended."""
        if self._is_mine:
            assert self._transient is not None
            return self._transient.join(seconds)
        if self._is_replaced:
            return True
        status = self.status
        if status.options.get("kind") != "transient" and status.phase != "starting":
            return status.master.wait(seconds)
        # The master is a thread of another process, or the run is still starting there. That
        # process may live on after the run, so the status in the store has to be polled.
        give_up = inf if seconds is None else time.monotonic() + seconds
        while not self.has_ended:
            left = give_up - time.monotonic()
            if left <= 0 or self.status.master.wait(min(POLL_SECONDS, left)):
                return self.has_ended
        return True

    def table(self) -> list[dict[str, Any]]:
        """A list with a dict per job, in the order of the workload: its state, the number of its
        last attempt, the worker, the times of start and end (in seconds since 1970), the duration,
        the error, and whether it is `selected`. In a run of a part of a workload, a job that is not
        selected is in the table if its earlier result is used.

        If the master was killed, a job that was running is CANCELLED, and a job that was assigned
        to a worker is READY; the error says that `resume` runs it."""
        given = {self._plan.ids[job] for job in self._plan.given}
        return [
            row_of(id, entry, selected=id not in given) for id, entry in self._entries().items()
        ]

    def counts(self) -> dict[JobState, int]:
        """The number of jobs in each state."""
        return dict(Counter(entry.state for entry in self._entries().values()))

    def failed(self) -> FailedJobs:
        """The rows of `table()` of the jobs that failed with an error, a crash or a timeout. `"job"
        in run.failed()` tells whether the job with this id failed."""
        return FailedJobs(row for row in self.table() if row["state"].is_failure)

    def raise_for_failures(self) -> Run:
        """Raises JobsFailed if jobs are not done: because they failed, or because they did not run
        (they are BLOCKED or CANCELLED, or the run was killed). Otherwise returns the run. Jobs that
        may still run do not count, so call `wait()` first: `run.wait().raise_for_failures()`."""
        raise_for_failures(self.table(), self.store, has_ended=self.has_ended)
        return self

    @property
    def results(self) -> Results:
        """The results by job id, for the jobs that have one. A result is read from the store when
        it is accessed."""
        return Results(
            self.result_of,
            lambda: [id for id, entry in self._entries().items() if entry.state.has_result],
        )

    def result_of(self, job: str) -> Any:
        """The result of a job. Raises NoResult if it has none; the message says why."""
        id = self._known(job)
        entry = self._entries()[id]
        if not entry.state.has_result:
            raise NoResult(
                f"job '{id}' has no result; its state is "
                f"{entry.state}{f' ({entry.error})' if entry.error else ''}"
            )
        if self._jobs.number[id] in self._plan.maps:
            entries = list(self._entries().values())
            places = list(result_places(self._plan, entries, self._jobs.number[id]))
            return decode(readers(self._store, places)[0]())
        assert entry.result is not None
        return decode(read_result(self._store.segment(entry.result.segment), entry.result.offset))

    def log(self, job: str) -> str:
        """The output of the last attempt of the job."""
        entry = self._entries()[self._known(job)]
        if entry.segment is None:
            return ""
        path = self._store.log(entry.segment)
        if not path.exists():
            return ""
        with open(path, "rb") as file:
            file.seek(entry.log_start)
            size = max(0, entry.log_end - entry.log_start)
            is_running = entry.state is JobState.RUNNING
            return file.read(None if is_running else size).decode(errors="replace")

    def follow(self, job: str) -> Iterator[Piece]:
        """The output of a job as it is written, until the job has ended. Each piece has the number
        of the `attempt` and its `text`. The job need not have started yet."""
        id = self._known(job)
        number = self._jobs.number[id]

        def look() -> Entry:
            return self._entries()[id] if self.has_ended else read_entry(self._store, number)

        return follow(self._store, number, look, lambda: self.has_ended)

    def traceback(self, job: str) -> str:
        """The traceback of a job that failed; empty if it raised no exception."""
        entry = self._entries()[self._known(job)]
        if entry.segment is None or entry.offset is None or entry.state is not JobState.FAILED:
            return ""
        return read_error(self._store.segment(entry.segment), entry.offset)[1]

    def lengths(self) -> tuple[float, float]:
        """The duration of the run, and the length of its critical path: the chain of dependent jobs
        with the longest total duration. Both in seconds."""
        entries = list(self._entries().values())
        begins = [entry.started for entry in entries if entry.started is not None]
        ends = [entry.ended for entry in entries if entry.ended is not None]
        seconds = {n: entry.seconds or 0.0 for n, entry in enumerate(entries)}
        paths = remaining_paths(self._plan.order, self._plan.downstream, seconds)
        return (max(ends) - min(begins) if begins and ends else 0.0), max(paths, default=0.0)

    def edges(self) -> list[tuple[str, str]]:
        """Which job is directly upstream of which, by their ids."""
        self._entries()  # the branches of maps may just have become known
        return self._plan.edges

    def reasons(self) -> dict[str, str | None]:
        """By job id: why the job ran or runs, why it was skipped, or why it did not run, as a
        sentence; None if that is not known yet."""
        entries = self._entries()
        rerun = bool(self.status.options.get("rerun"))
        return self._reasons.of(self._plan, entries, is_rerun=rerun)

    # Actions

    def cancel(self, timeout: float | None = 30.0) -> Run:
        """Cancels the run: stops the running jobs, starts no others, and waits until that is done.
        Existing results stay. Does nothing if the run has ended, whatever runs in its store now."""
        _check_timeout(timeout)
        if self.has_ended:
            return self
        status = self.status
        if status.phase == "starting":
            raise PyriteError(
                f"the run in '{self._store}' is still starting; try again in a moment"
            )
        if self._transient is not None and self._is_mine:
            self._transient.cancel()
        elif status.options.get("kind") == "transient":
            self._store.cancel(status.session)
        else:
            status.master.signal(signal.SIGTERM)
        if not self.wait_for_master(timeout):
            raise TimeoutError(
                f"the run in '{self._store}' has not ended {timeout:g} s after it was cancelled"
            )
        return self

    def replay(self, job: str, *, debugger: bool = False) -> Any:
        """Runs one job again in this process, with the same results of its upstream jobs. Returns
        its return value, or raises its exception.

        It has the working directory of the run. Breakpoints in its code work. With
        `debugger=True`, an exception opens the debugger at the line that raised it. Nothing is
        written to the store.
        """
        id = self._known(job)
        self._check_not_replaced()
        entries = list(self._entries().values())
        plan, number = self._plan, self._jobs.number[id]
        try:
            return replay(self._store, self._plan_number, plan, entries, number)
        except NoPlace as missing:
            above = missing.args[0]
            raise NoResult(
                f"the upstream job '{plan.ids[above]}' of '{id}' has no result; its state is "
                f"{entries[above].state}"
            ) from None
        except Exception as error:
            if debugger:
                import pdb

                pdb.post_mortem(error.__traceback__)
            raise

    # Drawings

    def to_mermaid(self) -> str:
        """The graph of the jobs, with a colour for each state, as Mermaid text."""
        return drawing.mermaid(*self._picture())

    def to_dot(self) -> str:
        """The graph of the jobs, with a colour for each state, as Graphviz DOT text."""
        return drawing.dot(*self._picture())

    def to_svg(self) -> str:
        """The graph of the jobs, with a colour for each state, as an SVG document."""
        return drawing.svg(*self._picture(), noun="jobs")

    def to_html(self) -> str:
        """A report as one HTML document: a summary, the graph, a time chart, the table of the jobs,
        and the outputs of the jobs that failed. Also `pyrite workload report STORE`."""
        from pyrite.workload.views.report.facts import facts_of
        from pyrite.workload.views.report.page import page

        _, critical_path = self.lengths()
        return page(
            facts_of(
                self._store,
                self.status,
                phase_of(self),
                self.table(),
                self._entries(),
                self._plan.edges,
                critical_path,
            )
        )

    def _picture(self) -> tuple[list[drawing.Box], list[drawing.Arrow]]:
        boxes = [
            drawing.Box(id, str(entry.state), COLORS[entry.state])
            for id, entry in self._entries().items()
        ]
        return boxes, [drawing.Arrow(a, b) for a, b in self._plan.edges]

    def _repr_html_(self) -> str:
        from pyrite.workload.views.notebook import html_of

        return html_of(self)

    def _ipython_display_(self) -> None:
        from pyrite.watching.notebook.live import show

        show(self.__repr__, self._repr_html_, self.wait_for_master)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {state}" for state, count in self.counts().items())
        return f"<Run in '{self._store}': {counts}>"

    # Internals

    def _entries(self) -> dict[str, Entry]:
        """The entries of all jobs. They are cached once the run has ended, because they cannot
        change then."""
        status = self.status
        if self._final is not None and self._final[0] == status.session:
            return self._final[1]
        self._check_not_replaced()
        is_over = self.has_ended
        was_cut_short = is_over and status.phase not in ("ended", "cancelled")
        plan, entries = read_entries(self._store, was_cut_short=was_cut_short)
        if plan != self._plan_number:
            raise self._replaced()
        if self._plan.maps:
            self._jobs.grow(read_extensions(self._store), len(entries))
        if was_cut_short:
            return {id: cut_short(entry, self._store) for id, entry in entries.items()}
        if is_over and self.status.session == status.session:
            self._final = (status.session, entries)
        return entries

    @property
    def _plan(self) -> Plan:
        return self._jobs.plan

    def _stored_status(self) -> Status:
        status = self._store.status()
        if status is None:
            raise PyriteError(f"the store '{self._store}' contains no run")
        return status

    @property
    def _is_mine(self) -> bool:
        """Whether the master is a thread of this process."""
        return (
            self._transient is not None
            and self._transient.is_here
            and self._session == self.status.session
        )

    @property
    def _is_replaced(self) -> bool:
        """Whether another run was started in the store. A run that is resumed stays the same."""
        return self._stored_status().run != self._last_status.run

    def _check_not_replaced(self) -> None:
        if self._is_replaced:
            raise self._replaced()

    def _replaced(self) -> PyriteError:
        return PyriteError(
            f"the store '{self._store}' now belongs to a newer run; to see that run, call "
            f"Run.attach('{self._store}')"
        )

    def _known(self, job: object) -> str:
        id = str(job)
        if id not in self._jobs.number and self._plan.maps:
            self._entries()
        if id not in self._jobs.number:
            near = did_you_mean(id, self._jobs.number)
            raise NoResult(f"there is no job '{id}' in this run{near}")
        return id

    def _last_words(self) -> str:
        """The last line of the master's log. It is empty unless the master itself has a bug."""
        line = last_line(self._store.folder / "master.log")
        return f" (the last line of its log: {line})" if line else ""


def _check_timeout(timeout: object) -> None:
    if timeout is not None and not isinstance(timeout, (int, float)):
        raise PyriteError(f"timeout must be a number of seconds, or None; got {shorten(timeout)}")
