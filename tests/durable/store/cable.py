"""A cable between a client and a ZooKeeper server, which a test can cut at a request: before it
reaches the server, or after the server has done it and before the answer reaches the client."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Final, Literal

OPERATIONS: Final = {1: "create", 4: "get", 5: "set", 8: "children", 12: "children", 14: "multi"}

Lost = Literal["request", "answer"]


class Cable:
    def __init__(self, port: int) -> None:
        self._to = port
        self._plan: tuple[str, Lost] | None = None
        self._is_dead = False
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_at(self, operation: str, lost: Lost) -> None:
        """At the next operation of this kind, once."""
        self._plan = (operation, lost)

    def die(self) -> None:
        """Cuts, and lets nothing through any more."""
        self._is_dead = True
        for end in self._ends:
            _close(end)

    def revive(self) -> None:
        self._is_dead = False

    def close(self) -> None:
        _close(self._listener)
        self.die()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._is_dead:
                    _close(client)
                    continue
                server = socket.create_connection(("127.0.0.1", self._to))
                self._ends += [client, server]
                doomed: set[int] = set()
                for pump in (self._requests, self._answers):
                    threading.Thread(
                        target=pump, args=(client, server, doomed), daemon=True
                    ).start()

    def _requests(self, client: socket.socket, server: socket.socket, doomed: set[int]) -> None:
        is_first = True  # the first frame of a connection has another form
        while (frame := _frame(client)) is not None:
            number, kind = (0, 0) if is_first else struct.unpack_from(">ii", frame)
            is_first = False
            if self._plan is not None and self._plan[0] == OPERATIONS.get(kind):
                lost, self._plan = self._plan[1], None
                self.cuts += 1
                if lost == "request":
                    break
                doomed.add(number)
            _send(server, frame)
        _close(client)
        _close(server)

    def _answers(self, client: socket.socket, server: socket.socket, doomed: set[int]) -> None:
        is_first = True
        while (frame := _frame(server)) is not None:
            if not is_first and struct.unpack_from(">i", frame)[0] in doomed:
                break
            is_first = False
            _send(client, frame)
        _close(client)
        _close(server)


def _frame(end: socket.socket) -> bytes | None:
    head = _bytes(end, 4)
    return None if head is None else _bytes(end, struct.unpack(">i", head)[0])


def _bytes(end: socket.socket, count: int) -> bytes | None:
    found = b""
    with suppress(OSError):
        while len(found) < count:
            more = end.recv(count - len(found))
            if not more:
                return None
            found += more
        return found
    return None


def _send(end: socket.socket, frame: bytes) -> None:
    with suppress(OSError):
        end.sendall(struct.pack(">i", len(frame)) + frame)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
