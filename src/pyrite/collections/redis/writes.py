"""What the processors of one execution write: sent without waiting, and waited for at the end.

All executions of a process share one connection for that. Its replies come in the order of the
writes, so whoever waits for a reply reads those before it, too, also for others.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from pyrite.collections.redis.faults import is_answer
from pyrite.collections.redis.server import Command, Connection, Script, Server
from pyrite.collections.stored.unavailable import CollectionsUnavailable
from pyrite.forks import repair_after_fork

MOST_UNDER_WAY: Final = 64
MOST_IN_A_COMMAND: Final = 50_000


class Asking(Protocol):
    """What maps and lists need of a server."""

    def call(self, of: str, *command: Any) -> Any: ...

    def write(self, of: str, commands: Sequence[Command]) -> None: ...

    def run(self, of: str, script: Script, keys: Sequence[bytes], *arguments: Any) -> Any: ...

    def change(
        self, of: str, key: bytes, *read: Any, change: Callable[[Any], tuple[list[Command], Any]]
    ) -> Any: ...


def in_commands(
    start: Command, arguments: Sequence[bytes], most: int = MOST_IN_A_COMMAND
) -> list[Command]:
    """Commands with at most so many arguments each: some servers refuse more than a million."""
    return [(*start, *arguments[at : at + most]) for at in range(0, len(arguments), most)]


class WriteLine:
    """The connection that writes are sent on, while there are any."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._start_empty()
        repair_after_fork(self)

    def _start_empty(self) -> None:
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._owed: deque[tuple[Writes, str]] = deque()

    after_fork = _start_empty

    def send(self, writes: Writes, of: str, command: Command) -> None:
        with self._lock:
            if self._connection is None:
                self._connection = self._server.acquired(of)
            self._owed.append((writes, of))
            writes.owed += 1
            try:
                with self._server.explaining(of, "lost"):
                    self._connection.send_command(*command, check_health=False)
            except BaseException as error:
                self._drop(error)
                raise
            if len(self._owed) > MOST_UNDER_WAY:
                self._read_one()

    def wait_for(self, writes: Writes) -> None:
        with self._lock:
            while writes.owed:
                self._read_one()
            self._release()

    def close(self) -> None:
        """Waits for all that was sent. Of an execution that was stopped, nobody has."""
        with self._lock:
            while self._owed:
                self._read_one()
            self._release()

    def _release(self) -> None:
        if self._connection is not None and not self._owed:
            self._server.release(self._connection)
            self._connection = None

    def _read_one(self) -> None:
        assert self._connection is not None
        writes, of = self._owed[0]
        try:
            with self._server.explaining(of, "lost"):
                self._connection.read_response()
        except CollectionsUnavailable as error:
            if not is_answer(error):
                self._drop(error)
                return
            writes.error = writes.error or error
        except BaseException as error:
            self._drop(error)
            raise
        self._owed.popleft()
        writes.owed -= 1

    def _drop(self, error: BaseException) -> None:
        """No more replies will come."""
        connection, self._connection = self._connection, None
        assert connection is not None
        connection.disconnect()
        self._server.release(connection)
        for writes, of in self._owed:
            writes.owed = 0
            if not isinstance(error, Exception):  # it is meant for one thread only
                error = CollectionsUnavailable(f"writing to {of} was interrupted")
            writes.error = writes.error or error
        self._owed.clear()


class Writes:
    """The server as one execution uses it: what it asks comes after what it wrote."""

    def __init__(self, server: Server, line: WriteLine) -> None:
        self._server = server
        self._line = line
        self.owed = 0
        """How many replies are under way."""
        self.error: Exception | None = None

    def write(self, of: str, commands: Sequence[Command]) -> None:
        """Writes. Raises, maybe later, if that failed."""
        if len(commands) == 1:
            self._line.send(self, of, commands[0])
            self._check()
        else:
            self.flush()
            self._server.write(of, commands)

    def flush(self) -> None:
        """Waits until everything is written. Raises if anything failed."""
        self._line.wait_for(self)
        self._check()

    def _check(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error

    def call(self, of: str, *command: Any) -> Any:
        self.flush()
        return self._server.call(of, *command)

    def run(self, of: str, script: Script, keys: Sequence[bytes], *arguments: Any) -> Any:
        self.flush()
        return self._server.run(of, script, keys, *arguments)

    def change(
        self, of: str, key: bytes, *read: Any, change: Callable[[Any], tuple[list[Command], Any]]
    ) -> Any:
        self.flush()
        return self._server.change(of, key, *read, change=change)
