"""Followed: one run of this process as the recorder follows it, from its begin to its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Final, TypeVar

from pyrite.job import Execution, JobStatus
from pyrite.watching.history import History
from pyrite.watching.lost import as_lost
from pyrite.watching.observing import failure_of, view_of
from pyrite.watching.rates import Rates
from pyrite.watching.views import RunView, StageView

T = TypeVar("T")

SHORT_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 2.0
"""So long a look waits for the store of a durable job; other runs are looked at, too."""
THREAD: Final = "pyrite-recorder-asks"


class Followed:
    def __init__(self, execution: Execution) -> None:
        self.id = execution.id
        self.execution: Execution | None = execution
        """None as soon as its end was seen: the DAG and its data need not stay in memory."""
        self.history = History()
        self.looks = 0
        self.next_line = 0
        """The first line of the log that is not in the journal yet."""
        self.is_in_journal = False
        self._rates = Rates()
        self._view: RunView | None = None
        self._asked: Future[tuple[bool, RunView]] | None = None
        """What the store of a durable job has not answered yet."""

    @property
    def view(self) -> RunView:
        if self._view is None:
            self.look()
            assert self._view is not None
        return self._view

    def look(self, patience: float = PATIENCE_SECONDS) -> None:
        """Takes the view of this moment. Looks at one run come one after the other. After
        `patience` seconds without an answer it is the view that was taken last, with what is known
        here."""
        execution = self.execution
        if execution is None:
            return
        has_ended, view = self._taken(execution, patience)
        view = self._rates.added_to(view)
        if has_ended and not view.has_ended:
            view = _left(view, execution)
        if has_ended and not view.stages and self._view is not None:
            view = replace(view, stages=_last(self._view.stages, view))
        self._view = view
        self.history.add(view)
        self.looks += 1
        if has_ended:
            self.execution = None

    def cancel(self) -> bool:
        """False if it has ended. A store that does not answer is told when it does."""
        execution = self.execution
        if execution is None:
            return False
        if not execution.job.is_durable:
            return execution.cancel()
        asked = _asked(execution.cancel)
        try:
            return asked.result(PATIENCE_SECONDS)
        except TimeoutError:
            return True

    def _taken(self, execution: Execution, patience: float) -> tuple[bool, RunView]:
        if not execution.job.is_durable:
            return _seen(execution)
        if self._asked is None:
            self._asked = _asked(lambda: _seen(execution))
        elif not self._asked.done():
            patience = 0.0  # an earlier look has waited for it
        try:
            has_ended, view = self._asked.result(patience)
        except TimeoutError:
            return False, self._unanswered(execution)
        self._asked = None
        return has_ended, replace(view, seen=time.time())  # it may have been asked for long ago

    def _unanswered(self, execution: Execution) -> RunView:
        view, last = view_of(execution, asks=False), self._view
        if last is not None:
            view = replace(
                view,
                vertices=last.vertices,
                edges=last.edges,
                stages=last.stages,
                members=last.members,
            )
        return replace(view, waits_for="waits for an answer of its store")

    @property
    def is_done(self) -> bool:
        return self.execution is not None and self.execution.done()

    @property
    def was_short(self) -> bool:
        """Whether it is a light job that has completed in a moment. There may be very many."""
        execution = self.execution
        return (
            execution is not None
            and execution.job.is_light
            and execution.status is JobStatus.COMPLETED
            and execution.ended is not None
            and execution.ended - execution.submitted < SHORT_SECONDS
            and execution.done()
        )

    @property
    def belongs_in_journal(self) -> bool:
        """A light job of a millisecond should cost no file."""
        view = self.view
        return (
            self.is_in_journal
            or view.kind in ("normal", "durable")
            or view.state == "failed"
            or view.seconds > SHORT_SECONDS
        )


def _seen(execution: Execution) -> tuple[bool, RunView]:
    """Whether it has ended, and its view."""
    has_ended = execution.done()  # asked first, so that the view is the last one if it is true
    return has_ended, view_of(execution)


def _asked(ask: Callable[[], T]) -> Future[T]:
    """What is done on a thread of its own, which may wait for a server without limit."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(ask())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name=THREAD, daemon=True).start()
    return future


def _last(stages: tuple[StageView, ...], ended: RunView) -> tuple[StageView, ...]:
    """Spark forgets the stages of a job that has ended; these are the ones seen last."""
    is_complete = ended.state == "completed"
    return tuple(
        replace(each, done=each.total if is_complete else each.done, rate=0.0) for each in stages
    )


def _left(view: RunView, execution: Execution) -> RunView:
    """A durable job goes on when the instance that followed it is closed. How it ends is not seen
    from here."""
    error = execution.exception(0)
    return as_lost(view, time.time(), None if error is None else failure_of(error))
