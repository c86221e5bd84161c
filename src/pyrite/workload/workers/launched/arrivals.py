"""The master's side of launched workers: their hosts connect to it over the wire."""

from __future__ import annotations

import json
import selectors
import socket
from collections import deque
from collections.abc import Callable

from pyrite.wire.identity import Identity
from pyrite.wire.keys import keys_from
from pyrite.wire.messages import Message, Parcel
from pyrite.wire.sockets import Limits
from pyrite.wire.wire import Connected, Connection, Lost, Received, Wire
from pyrite.workload.scheduling.scheduler import MOST_SHORT_JOBS
from pyrite.workload.workers.launched.parcels import PURPOSE, Label
from pyrite.workload.workers.links import Listeners, WorkerLink
from pyrite.workload.workers.orders import DONE


class Arrivals:
    """Lets hosts connect that know the secret. Each of them becomes a worker of the master, until
    `shut`."""

    def __init__(
        self,
        listener: socket.socket,
        secret: str,
        limits: Limits,
        on_arrival: Callable[[Wire, Connection], LaunchedWorker],
    ) -> None:
        host, port = listener.getsockname()[:2]
        self._wire = Wire(keys_from(secret, PURPOSE), Identity(address=f"{host}:{port}"), limits)
        self._wire.listen(host, port, listener.detach())
        self._on_arrival = on_arrival
        self._workers: dict[Connection, LaunchedWorker] = {}
        self._is_open = True

    def fileno(self) -> int:
        return self._wire.fileno()

    def patience(self, seconds: float | None) -> float | None:
        """How long the master may wait until the next turn."""
        return self._wire.patience(seconds)

    def turn(self) -> None:
        """Sends and receives what can be without waiting."""
        for event in self._wire.turn():
            if isinstance(event, Connected) and self._is_open:
                worker = self._on_arrival(self._wire, event.connection)
                self._workers[event.connection] = worker
            elif isinstance(event, Connected):
                self._wire.drop(event.connection, "all jobs have ended")
            elif isinstance(event, Received) and event.connection in self._workers:
                self._workers[event.connection].received(event.message)
            elif isinstance(event, Lost) and event.connection in self._workers:
                self._workers.pop(event.connection).lost(event.reason)

    def shut(self) -> None:
        """Refuses whoever connects from now on."""
        self._is_open = False

    def close(self) -> None:
        self._wire.close()


class LaunchedWorker(WorkerLink):
    """A worker that a host started, on any machine. Its host kills it when the connection is
    closed."""

    def __init__(
        self, name: str, segment: int, wire: Wire, connection: Connection, *, plan: int
    ) -> None:
        super().__init__(name, segment)
        self._wire = wire
        self._connection = connection
        self._reports: deque[bytes] = deque()
        self._is_asked = False  # for the orders that it has not taken
        self._sent = 0
        self._last_sent: deque[bytes] = deque(maxlen=MOST_SHORT_JOBS)
        self._why: str | None = None  # it has ended
        self._tell(Label.START, json.dumps({"segment": segment, "plan": plan}).encode())

    def register(self, selector: selectors.BaseSelector, listeners: Listeners) -> None:
        self._listeners = listeners

    def received(self, message: Message) -> None:
        if self._why is not None:
            return
        if not isinstance(message, Parcel):
            self._drop(f"it sent a {type(message).__name__} instead of a parcel")
            return
        content = bytes(message.content)
        if message.label == Label.REPORT:
            self._reports.append(content)
            self._listeners.on_report()
        elif message.label == Label.RETURNED:
            self._listeners.on_return(content)
        elif message.label == Label.THAT_IS_ALL:
            self._is_asked = False
        elif message.label == Label.ENDED:
            self._ended(**json.loads(content))
        else:
            self._drop(f"it sent a parcel with the label {message.label}")

    def _ended(self, *, orders: int, why: str) -> None:
        """Its worker has ended. Of the orders that were sent, the host had got so many."""
        for _ in range(self._sent - orders):
            if (order := self._last_sent.pop()) != DONE:
                self._listeners.on_return(order)
        self.lost(why)

    def lost(self, why: str) -> None:
        if self._why is None:
            self._why = why
            self._listeners.on_death()

    def send(self, order: bytes) -> None:
        self._sent += 1
        self._last_sent.append(order)
        self._tell(Label.ORDER, order)

    def recall(self) -> None:
        if not self._is_asked and self._why is None:
            self._is_asked = True
            self._tell(Label.RECALL)

    def read(self) -> bytes | None:
        return self._reports.popleft() if self._reports else None

    def kill(self) -> None:
        self._drop("the worker is to end")

    def bury(self, selector: selectors.BaseSelector) -> str:
        self._drop("the worker has ended")
        return self._why or "its connection was closed"

    def _tell(self, label: Label, content: bytes = b"") -> None:
        self._connection.send(Parcel(label, content))

    def _drop(self, reason: str) -> None:
        if self._connection.is_open:
            self._wire.drop(self._connection, reason)
