"""Watches the durable jobs of a folder or a deployment, from any thread. It starts nothing, and
does nothing while nobody asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Final, TypeVar

from pyrite.durable.client.desk import Desk
from pyrite.durable.client.watching import DeploymentView, cancel_job, deployment_view, job_view
from pyrite.durable.hosts.places import open_queues
from pyrite.durable.queues.queues import Queues, QueuesError
from pyrite.durable.store.deployment import hidden
from pyrite.durable.store.opening import open_existing_store
from pyrite.durable.store.store import Store, StoreError
from pyrite.watching.views import RunView

T = TypeVar("T")

QUEUES_PATIENCE: Final = 2.0
AGAIN_SECONDS: Final = 10.0
"""Queues that could not be reached are asked again after so long."""


class NoAnswer(StoreError):
    """The store did not answer in time."""


class Watcher:
    """`place` is a folder, or the URL of a deployment. All calls raise PyriteError if the store
    cannot be reached, and NoAnswer if it has not answered within `patience` seconds. Close it."""

    def __init__(self, place: str, *, patience: float | None = None) -> None:
        self.place = place
        self._patience = patience
        self._desk = Desk(partial(open_existing_store, place))
        self._queues: Queues | None = None
        self._problem: str | None = None
        self._again = 0.0

    def deployment(self) -> DeploymentView:
        return self._ask(self._deployment)

    def job(self, id: str) -> RunView:
        return self._ask(lambda store: job_view(store, id))

    def cancel(self, id: str) -> None:
        """Asks for it, and returns at once. After NoAnswer, the job may be cancelled or not."""
        try:
            self._ask(lambda store: cancel_job(store, id))
        except NoAnswer as error:
            raise NoAnswer(f"{error}; look later whether the job is cancelled") from None

    def look_for_answer(self) -> Future[object]:
        """Done as soon as the store answers, or cannot be reached. Does not wait for it."""
        return self._desk.post(lambda store: store.get("/job"))

    def close(self, *, seconds: float = 5.0) -> None:
        """Waits up to `seconds` for what is being read."""
        self._desk.close(seconds=seconds)
        self._close_queues()

    def _ask(self, act: Callable[[Store], T]) -> T:
        try:
            return self._desk.ask(act, seconds=self._patience)
        except TimeoutError:
            raise NoAnswer(f"{hidden(self.place)} does not answer") from None

    # All that follows is done on the thread of the desk, but for the end.

    def _deployment(self, store: Store) -> DeploymentView:
        problem = self._open_queues()
        view = deployment_view(store, self._queues, problem=problem)
        if view.problem is not None:
            self._failed(view.problem)
        return view

    def _open_queues(self) -> str | None:
        """Why there are none."""
        if self._queues is None and time.monotonic() >= self._again:
            try:
                self._queues = open_queues(self.place, patience=QUEUES_PATIENCE)
                self._problem = None
            except QueuesError as error:
                self._failed(str(error))
        return self._problem

    def _failed(self, problem: str) -> None:
        self._problem = problem
        self._again = time.monotonic() + AGAIN_SECONDS
        self._close_queues()

    def _close_queues(self) -> None:
        queues, self._queues = self._queues, None
        if queues is not None:
            queues.close()
