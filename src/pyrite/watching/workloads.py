"""Who is told what happens in a run of a workload, in the process of its master: Prometheus,
OpenTelemetry, OpenLineage."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

logger = logging.getLogger("pyrite")

Outcome = Literal["completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRun:
    name: str
    """The same for all runs of the workload."""
    id: str
    """Of this run alone."""
    started: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt of a job: it has begun, or, if it has an outcome, ended."""

    job: str
    """Its id in the workload."""
    number: int
    """The number of the job, which its worker knows."""
    attempt: int
    started: float
    ended: float = 0.0
    outcome: Outcome | None = None
    error: str | None = None


class WorkloadObserver(Protocol):
    """All of it must return at once."""

    def run_began(self, run: WorkloadRun) -> None: ...

    def attempted(self, run: WorkloadRun, attempt: Attempt) -> None: ...

    def counted(self, run: WorkloadRun, states: Mapping[str, int]) -> None:
        """How many jobs are in each state."""

    def run_ended(
        self, run: WorkloadRun, outcome: Outcome, at: float, problem: str | None
    ) -> None: ...


_lock: Final = threading.Lock()
_observers: tuple[WorkloadObserver, ...] = ()


def add_workload_observer(observer: WorkloadObserver) -> None:
    global _observers
    with _lock:
        if all(each is not observer for each in _observers):
            _observers = (*_observers, observer)


def remove_workload_observer(observer: WorkloadObserver) -> None:
    global _observers
    with _lock:
        _observers = tuple(each for each in _observers if each is not observer)


def are_observed() -> bool:
    return bool(_observers)


def tell(what: str, *arguments: Any) -> None:
    """Calls a method of all observers. One that raises does not stop a run."""
    for observer in _observers:
        try:
            getattr(observer, what)(*arguments)
        except Exception:
            logger.warning("%r could not observe a workload", observer, exc_info=True)
