"""The normal jobs that a member drives, from a client's order to the answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrite.cluster.light.figures import Figures
from pyrite.cluster.light.outcomes import Outcome
from pyrite.cluster.light.parts import not_there
from pyrite.cluster.normal.figures import Ending, figures_of_run
from pyrite.cluster.normal.orders import NormalOrder
from pyrite.engine.failure import Failed
from pyrite.errors import JobCancelled
from pyrite.exchange.driving import Driver, NormalRun
from pyrite.wire import messages as m
from pyrite.wire.wire import Connection

if TYPE_CHECKING:
    from pyrite.cluster.member import Member


@dataclass(slots=True, eq=False)
class _Driven:
    client: Connection
    run: NormalRun | None = None
    """None until the job is unpickled."""
    cancelled: bool = False


class NormalJobs:
    """`new_driver` is called with the first job. What is said here about threads: `_running` is
    changed on the member's own."""

    def __init__(self, member: Member, new_driver: Callable[[], Driver]) -> None:
        self._member = member
        self._new_driver = new_driver
        self._driver: Driver | None = None
        self._making_driver = threading.Lock()
        self._running: dict[bytes, _Driven] = {}

    def on_drive(self, connection: Connection, message: m.Drive) -> None:
        id = message.execution
        self._running[id] = _Driven(connection)
        if self._member.is_closing:
            self._ended(id, not_there(self._member.address, "is shutting down"))
            return
        try:
            self._member.service.threads.run(lambda: self._prepare(id, connection, message))
        except Exception as error:  # no thread can be started
            self._ended(id, _outcome_of(error, self._member.address))

    def client_lost(self, connection: Connection) -> None:
        """Nobody is left who could be told the outcome: its jobs are cancelled."""
        for id, driven in list(self._running.items()):
            if driven.client is connection:
                self._cancel(id)

    def cancel(self, id: bytes) -> None:
        """Any thread may call this."""
        self._member.on_thread(lambda: self._cancel(id))

    def figures(self, id: bytes) -> Figures | None:
        """Of a job that runs here. Any thread that may wait for Spark may call this."""
        driven = self._running.get(id)
        return None if driven is None else figures_of_run(driven.run)

    def close(self) -> None:
        """Cancels all jobs, and ends the Spark session."""
        for id in list(self._running):
            self.cancel(id)
        with self._making_driver:
            if self._driver is not None:
                self._driver.close()

    def _prepare(self, id: bytes, client: Connection, message: m.Drive) -> None:
        """Unpickles the job, which imports what it needs: so not on the member's own thread."""
        member = self._member

        def on_end(error: BaseException | None) -> None:
            outcome = _outcome_of(error, member.address)
            figures = self.figures(id)  # here on the thread of the run: it may wait for Spark
            member.on_thread(lambda: self._ended(id, outcome, figures))

        try:
            order = NormalOrder.unpacked(message.order)
            run = self._the_driver().new_run(
                order.job(),
                id.hex(),
                deployment=order.deployment,
                collections=member.collections,
                on_end=on_end,
                on_running=lambda: client.send(m.Running(id)),
            )
        except BaseException as error:
            on_end(error)
        else:
            member.on_thread(lambda: self._begin(id, run))

    def _the_driver(self) -> Driver:
        with self._making_driver:
            if self._driver is None:
                self._driver = self._new_driver()
            return self._driver

    def _begin(self, id: bytes, run: NormalRun) -> None:
        driven = self._running[id]
        driven.run = run
        if driven.cancelled:
            run.cancel()
        try:
            run.begin(self._member.service.threads.run)
        except Exception as error:  # no thread can be started
            self._ended(id, _outcome_of(error, self._member.address))

    def _cancel(self, id: bytes) -> None:
        driven = self._running.get(id)
        if driven is not None:
            driven.cancelled = True
            if driven.run is not None:
                driven.run.cancel()

    def _ended(self, id: bytes, outcome: Outcome, figures: Figures | None = None) -> None:
        driven = self._running.pop(id)
        ending = Ending(outcome, figures or Figures())
        driven.client.send(m.Answer(id, ending.packed()))


def _outcome_of(error: BaseException | None, address: str) -> Outcome:
    if error is None:
        return Outcome()
    if isinstance(error, JobCancelled):
        return Outcome(cancelled=True)
    return Outcome.failed(Failed.of(error), address)
