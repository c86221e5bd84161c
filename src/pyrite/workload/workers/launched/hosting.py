"""The host of a launched worker: the process in which a launcher calls `host_worker`.

It connects to the master and starts a worker process. The worker process is like one of the
master's own, and does not know the secret. The host hands over what the master sends to it, and
what it reports. When the master closes the connection, or dies, the host kills the worker; when the
host dies, the worker ends by itself, or is killed by the reaper.
"""

from __future__ import annotations

import json
import math
import select
import socket
from contextlib import closing

from pyrite.errors import RunBroken
from pyrite.wire.identity import Identity
from pyrite.wire.keys import keys_from
from pyrite.wire.messages import Message, Parcel
from pyrite.wire.sockets import Limits
from pyrite.wire.wire import Connected, Connection, Event, NotReached, Received, Wire
from pyrite.workload.storage.store import Store
from pyrite.workload.system.processes import Reaper
from pyrite.workload.workers.launched.parcels import PURPOSE, Label
from pyrite.workload.workers.worker_process import WorkerProcess

STILLBIRTHS_MAX = 3  # consecutive workers that may end before they are ready


def host_workers(store: Store, address: str, secret: str, limits: dict[str, float]) -> None:
    """Keeps one worker process running until the master has ended, or accepts no more workers
    because all jobs have ended. Raises RunBroken if the master refuses to talk to this process, or
    if workers cannot start here."""
    reaper = Reaper()
    try:
        keys = keys_from(secret, PURPOSE)
        with closing(Wire(keys, Identity(), Limits(**limits))) as wire:
            stillbirths = 0
            while (host := _connected(wire, store, address, reaper)) is not None:
                host.serve()
                if not host.why:
                    return
                stillbirths = 0 if host.was_ready else stillbirths + 1
                if stillbirths == STILLBIRTHS_MAX:
                    raise RunBroken(
                        f"{stillbirths} workers in a row on {socket.gethostname()} ended before "
                        f"they were ready; the last one: {host.why}"
                    )
    finally:
        reaper.close()


def _connected(wire: Wire, store: Store, address: str, reaper: Reaper) -> _Host | None:
    wire.dial(address)
    while True:
        wire.park(None)
        events = wire.turn()
        for at, event in enumerate(events):
            if isinstance(event, Connected):
                return _Host(wire, event.connection, store, reaper, events[at + 1 :])
            if isinstance(event, NotReached):
                if event.is_refusal:
                    raise RunBroken(
                        f"the worker on {socket.gethostname()} and the master at {address} cannot "
                        f"work together: {event.reason}"
                    )
                return None


class _Host:
    """One connection, and the worker process that belongs to it."""

    def __init__(
        self, wire: Wire, connection: Connection, store: Store, reaper: Reaper, events: list[Event]
    ) -> None:
        self._wire = wire
        self._connection = connection
        self._store = store
        self._reaper = reaper
        self._worker: WorkerProcess | None = None
        self._segment = 0
        self._orders = 0  # that have come
        self.was_ready = False  # the worker
        self.why = ""
        """Why the worker ended, and the last line of its log; empty if there was none."""
        self._watch = select.poll()
        self._watch.register(wire, select.POLLIN)
        self._obey(events)

    def serve(self) -> None:
        """Until the connection has ended."""
        try:
            while self._connection.is_open:
                seconds = self._wire.patience(None)
                ready = self._watch.poll(None if seconds is None else math.ceil(seconds * 1000))
                self._obey(self._wire.turn())
                if self._worker is not None:
                    self._tell_of(self._worker, {file for file, _ in ready})
        finally:
            if self._worker is not None:
                self._end(self._worker)

    # From the master

    def _obey(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Received) and event.connection is self._connection:
                self._take(event.message)

    def _take(self, message: Message) -> None:
        if not isinstance(message, Parcel):
            self._wire.drop(self._connection, f"it sent a {type(message).__name__}, not a parcel")
        elif message.label == Label.START:
            self._start(**json.loads(bytes(message.content)))
        elif self._worker is None:
            return  # it was sent before the master knew that the worker has ended
        elif message.label == Label.ORDER:
            self._orders += 1
            self._worker.send(bytes(message.content))
        elif message.label == Label.RECALL:
            self._return_orders(self._worker)
            # If the worker has taken the last order, its report of the job before is there. The
            # master has to know of it first, or it would ask again at once.
            self._report(self._worker)
            self._send(Label.THAT_IS_ALL)

    def _start(self, *, plan: int, segment: int) -> None:
        origin = self._store.read_origin(plan).on_this_machine()
        self._worker = WorkerProcess(
            self._store, plan=plan, segment=segment, reaper=self._reaper, origin=origin
        )
        self._segment = segment
        self._watch.register(self._worker.reports, select.POLLIN)
        self._watch.register(self._worker.alive, select.POLLIN)

    # To the master

    def _tell_of(self, worker: WorkerProcess, ready: set[int]) -> None:
        if worker.reports in ready:
            self._report(worker)
        if worker.alive in ready:
            self._tell_end(worker)

    def _report(self, worker: WorkerProcess) -> None:
        while data := worker.read():
            self.was_ready = True
            self._send(Label.REPORT, data)
        if data == b"":
            worker.kill()  # it is ending, or a job closed the pipe, so that it cannot report

    def _tell_end(self, worker: WorkerProcess) -> None:
        self._worker = None
        self._watch.unregister(worker.reports)
        self._watch.unregister(worker.alive)
        self._report(worker)
        self._return_orders(worker)
        end = {"orders": self._orders, "why": self._end(worker)}
        self._send(Label.ENDED, json.dumps(end).encode())

    def _end(self, worker: WorkerProcess) -> str:
        self.why = why = worker.end()
        if not self.was_ready:
            self.why += f"; the last line of its log: {self._store.last_words(self._segment)}"
        return why

    def _return_orders(self, worker: WorkerProcess) -> None:
        while order := worker.take_back():
            self._send(Label.RETURNED, order)

    def _send(self, label: Label, content: bytes = b"") -> None:
        self._connection.send(Parcel(label, content))
