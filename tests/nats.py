"""NATS servers with JetStream for tests: single ones and clusters, on loopback, with data in a
folder."""

from __future__ import annotations

import socket
import sys
import threading
import time
from pathlib import Path

from tests.ports import free_port, free_ports
from tests.servers import ServerProcess

START_SECONDS = 20.0


class Nats(ServerProcess):
    """One server. It keeps its data and its port when it is started again."""

    def __init__(
        self,
        folder: Path,
        name: str = "nats",
        *,
        routes: tuple[int, ...] = (),
        jetstream: bool = True,
    ) -> None:
        """`routes` has the ports at which the servers of a cluster talk to each other, its own
        first."""
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / f"{name}.log"
        self.port = free_port()
        self._arguments = [
            *("--name", name, "--addr", "127.0.0.1", "--port", str(self.port)),
            *("--store_dir", str(folder / name), "--log", str(self._log)),
            *(["--jetstream"] if jetstream else []),
        ]
        if routes:
            peers = ",".join(f"nats://127.0.0.1:{port}" for port in routes[1:])
            own = f"nats://127.0.0.1:{routes[0]}"
            self._arguments += ["--cluster_name", "c", "--cluster", own, "--routes", peers]

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when it takes connections."""
        program = Path(sys.executable).parent / "nats-server"
        self._run(program, *self._arguments)
        assert self._process is not None
        give_up = time.monotonic() + START_SECONDS
        while not self._takes_connections():
            assert self._process.poll() is None, f"nats-server ended: {self._log.read_text()}"
            assert time.monotonic() < give_up, "nats-server does not answer"
            time.sleep(0.01)

    def _takes_connections(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                return connection.recv(4) == b"INFO"
        except OSError:
            return False


class Killer:
    """Kills a server and starts it again, so often, while the block runs. The block says when it
    has done something, so that the kills fall in between."""

    def __init__(self, servers: list[Nats], times: int) -> None:
        self._servers = servers
        self._times = times
        self._moved = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._kill)
        self.is_over = threading.Event()

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        for _ in range(100):
            self._moved.release()
        self._thread.join()

    def moved(self) -> None:
        self._moved.release()

    def _kill(self) -> None:
        for number in range(self._times):
            for _ in range(7):
                self._moved.acquire()
            server = self._servers[number % len(self._servers)]
            server.kill()
            server.start()
        self.is_over.set()


def cluster(folder: Path, size: int = 3) -> list[Nats]:
    """The servers of one cluster, not started yet."""
    ports = free_ports(size)
    return [
        Nats(folder, f"nats-{n}", routes=(ports[n], *ports[:n], *ports[n + 1 :]))
        for n in range(size)
    ]
