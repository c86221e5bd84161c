"""A network that tests can break: a proxy on loopback, between two members or a client and one."""

from __future__ import annotations

import contextlib
import socket
import threading


class Proxy:
    """Forwards connections to an address, until it is told to drop or to cut them."""

    def __init__(self, target: str) -> None:
        host, port = target.split(":")
        self._target = host, int(port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self._drops = False
        self._refuses = False
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def drop(self) -> None:
        """From now on nothing gets through, and nobody is told."""
        self._drops = True

    def cut(self) -> None:
        """Ends all connections, and accepts no new ones."""
        self._refuses = True
        self._end_all()

    def mend(self) -> None:
        """Lets new connections through again."""
        self._end_all()
        self._drops = self._refuses = False

    def close(self) -> None:
        self.cut()
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _end_all(self) -> None:
        with self._lock:
            for each in self._sockets:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()
            self._sockets.clear()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                here, _ = self._server.accept()
                if self._refuses:
                    here.close()
                    continue
                there = socket.create_connection(self._target)
                with self._lock:
                    self._sockets += (here, there)
                for a, b in ((here, there), (there, here)):
                    threading.Thread(target=self._forward, args=(a, b), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if not self._drops:
                    target.sendall(data)
        if not self._drops:
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_RDWR)
