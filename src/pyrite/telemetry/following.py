"""Following: an observer that is told of the beginning and, once, of the end of each run of a job,
and of what happens in workloads.

A run may end just before its process does, before any thread has called what waits for the end. So
whoever sends something at the end of the process asks first which runs have ended."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Final

from pyrite.forks import repair_after_fork
from pyrite.job import Execution
from pyrite.watching.observers import add_observer, remove_observer
from pyrite.watching.workloads import (
    Attempt,
    Outcome,
    WorkloadRun,
    add_workload_observer,
    remove_workload_observer,
)

SETTLING_SECONDS: Final = 1.0
"""How long it waits for another thread that looks at the end of a run."""


class Following:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: dict[str, Execution] = {}
        self._ending: dict[str, int] = {}
        """The runs whose end is looked at now, each with the thread that does."""
        repair_after_fork(self)

    def on_begin(self, execution: Execution) -> None:
        """Called on the thread that executes the job: it must return at once."""

    def on_end(self, execution: Execution) -> None:
        """Called once. If the run was in this process, on a thread of the engine: it must return at
        once. Otherwise on one that may block."""

    def on_left(self, execution: Execution) -> None:
        """Called instead if nobody follows a run any more that goes on: a durable job whose
        instance is closed."""

    def run_began(self, run: WorkloadRun) -> None:
        """A run of a workload has begun, and so on: as a WorkloadObserver is told."""

    def attempted(self, run: WorkloadRun, attempt: Attempt) -> None: ...

    def counted(self, run: WorkloadRun, states: Mapping[str, int]) -> None: ...

    def run_ended(
        self, run: WorkloadRun, outcome: Outcome, at: float, problem: str | None
    ) -> None: ...

    def follow(self) -> None:
        add_observer(self)
        add_workload_observer(self)

    def unfollow(self) -> None:
        """Runs that are running are still followed to their end."""
        remove_observer(self)
        remove_workload_observer(self)

    @property
    def running(self) -> tuple[Execution, ...]:
        return tuple(self._running.copy().values())

    def settle(self) -> None:
        """Returns when all ends are looked at: by this thread, or by the one that has begun to."""
        for execution in self.running:
            if execution.done():
                self._ended(execution)
        here = threading.get_ident()
        with self._changed:
            begun = {id for id, thread in self._ending.items() if thread != here}
            self._changed.wait_for(lambda: begun.isdisjoint(self._ending), SETTLING_SECONDS)

    def began(self, execution: Execution) -> None:
        self.on_begin(execution)
        self._running[execution.id] = execution
        if execution.runs_here:  # all that is asked is here, and another thread would cost more
            Future.add_done_callback(execution, self._ended)
        else:
            execution.add_done_callback(self._ended)

    def after_fork(self) -> None:
        """The runs of the parent do not end here."""
        self._changed = threading.Condition()
        self._running = {}
        self._ending = {}

    def _ended(self, execution: Future[None]) -> None:
        assert isinstance(execution, Execution)
        with self._changed:
            if self._running.pop(execution.id, None) is None:
                return
            self._ending[execution.id] = threading.get_ident()
        try:
            if execution.ended is None:
                self.on_left(execution)
            else:
                self.on_end(execution)
        finally:
            with self._changed:
                self._ending.pop(execution.id, None)
                self._changed.notify_all()
