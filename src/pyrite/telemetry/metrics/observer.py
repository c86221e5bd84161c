"""The observer that counts all runs of this process, for the endpoint and the gateway."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final

from pyrite.forks import repair_after_fork
from pyrite.job import Execution
from pyrite.telemetry.metrics.totals import Totals
from pyrite.watching.observers import add_observer, remove_observer
from pyrite.watching.observing import failure_of, name_of, read


class Counting:
    """Runs are counted while anybody uses it. What was counted stays: counters never fall in the
    life of a process."""

    def __init__(self) -> None:
        self._totals = Totals()
        self._running: dict[str, Execution] = {}
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        repair_after_fork(self)

    def use(self, on_change: Callable[[], None]) -> None:
        """Counts from now on. Calls `on_change` when a run has begun or ended; it must return at
        once."""
        with self._lock:
            self._listeners.append(on_change)
        add_observer(self)

    def leave(self, on_change: Callable[[], None]) -> None:
        with self._lock:
            if on_change in self._listeners:
                self._listeners.remove(on_change)
            if self._listeners:
                return
        remove_observer(self)

    @contextmanager
    def totals(self) -> Iterator[Totals]:
        """What all runs have done until now; only for the time of the block."""
        running = list(self._running.values())
        for execution in running:  # without the lock: this may ask another process
            self._look(execution)
        with self._lock:
            yield self._totals

    @property
    def is_busy(self) -> bool:
        """Whether anything is running."""
        return bool(self._running)

    def began(self, execution: Execution) -> None:
        with self._lock:
            self._totals.began(execution.id, name_of(execution.job))
            # Series begin at 0: Prometheus does not see a counter grow that begins with its value.
            self._totals.saw(execution.id, {vertex.name: {} for vertex in execution.job.dag})
            self._running[execution.id] = execution
        self._tell()
        execution.add_done_callback(self._ended)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._running = {}
        self._totals = Totals()

    def _ended(self, future: Future[None]) -> None:
        assert isinstance(future, Execution)
        self._look(future)
        self._tell()

    def _look(self, execution: Execution) -> None:
        has_ended = execution.done()  # before the metrics are read: then they are the last ones
        metrics = read(execution.metrics, {})
        failure = None
        if has_ended and not execution.cancelled():
            error = execution.exception(0)
            failure = None if error is None else failure_of(error)
        with self._lock:
            self._totals.saw(execution.id, metrics)
            if has_ended and self._running.pop(execution.id, None) is not None:
                ended = execution.ended or execution.submitted
                self._totals.ended(
                    execution.id,
                    state=execution.status.value,
                    at=ended,
                    seconds=max(0.0, ended - execution.submitted),
                    failed_at=None if failure is None else failure.vertex,
                )

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()


COUNTING: Final = Counting()
