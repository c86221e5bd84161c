"""Who is told that a run has begun: the journal of runs, the page, Prometheus, OpenTelemetry,
OpenLineage. Without observers, a run costs one look at an empty tuple more."""

from __future__ import annotations

import logging
import threading
from typing import Final, Protocol

from pyrite.job import Execution

logger = logging.getLogger("pyrite")


class Observer(Protocol):
    def began(self, execution: Execution) -> None:
        """A run has begun in this process, or was submitted from it. It must return at once; the
        end comes by `execution.add_done_callback`."""


_lock: Final = threading.Lock()
_observers: tuple[Observer, ...] = ()


def add_observer(observer: Observer) -> None:
    """Tells the observer of all runs that begin from now on. Adding it again changes nothing."""
    global _observers
    with _lock:
        if all(each is not observer for each in _observers):
            _observers = (*_observers, observer)


def remove_observer(observer: Observer) -> None:
    global _observers
    with _lock:
        _observers = tuple(each for each in _observers if each is not observer)


def begun(execution: Execution) -> Execution:
    """Called by everything that starts jobs. An observer that raises does not stop a job."""
    for observer in _observers:
        try:
            observer.began(execution)
        except Exception:
            logger.warning("%r could not observe %r", observer, execution, exc_info=True)
    return execution
