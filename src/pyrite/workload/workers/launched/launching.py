"""Persistent workers that a launcher starts. A launcher is any function that behaves like a
parallel `map`; it calls `host_worker` once per worker.

`host_worker` starts a worker process, on whatever machine the launcher runs it, and connects it to
the master. If the worker dies, `host_worker` starts another one. The folder of the store must be
shared by all these machines. Only who knows the secret of the run can connect to its master.
"""

from __future__ import annotations

import secrets
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pyrite.system.private import write_private
from pyrite.workload.storage.store import Store
from pyrite.workload.system.copies import above_streams

SECRET_LENGTH = 64
LIMITS = {"handshake": 10.0, "silence": 30.0}
"""How many seconds the other side may take to answer (it may be busy), and after how many without
a sign of life it counts as gone."""

START_SECONDS = 60.0
"""How long a worker process may take until it is ready."""

Launcher = Callable[[Callable[["Post"], None], Iterable["Post"]], Iterable[Any]]


@dataclass(frozen=True, slots=True)
class Post:
    """What a launched worker needs to connect to its master."""

    number: int
    store: str
    address: str
    path: tuple[str, ...]
    limits: dict[str, float]
    secret: str = field(repr=False)


class Door:
    """A socket to which the workers connect, and the secret that they must know."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        server = socket.create_server((host, 0))
        self.listener = socket.socket(fileno=above_streams(server.detach()))
        self.secret = secrets.token_hex(SECRET_LENGTH // 2)

    def launch(
        self,
        launcher: Launcher,
        store: Store,
        path: tuple[str, ...],
        workers: int,
        lifeline: IO[bytes],
    ) -> None:
        """Calls the launcher in a thread; it returns when its workers have ended. Then closes the
        pipe to the master, which thereby knows that no more workers will connect. From now on, only
        the master listens."""
        host, port = self.listener.getsockname()[:2]
        self.listener.close()
        posts = [
            Post(n, str(store), f"{host}:{port}", path, LIMITS, self.secret) for n in range(workers)
        ]

        def run() -> None:
            try:
                error_of(store).unlink(missing_ok=True)
                for _ in launcher(host_worker, posts):
                    pass
            except BaseException as error:
                text = f"{type(error).__name__}: {error}"
                with suppress(OSError):
                    write_private(error_of(store), text.encode(errors="replace"))
            with suppress(OSError):
                lifeline.close()

        threading.Thread(target=run, name="workload launcher", daemon=True).start()


def error_of(store: Store) -> Path:
    """The file with the error that the launcher raised, if it did."""
    return store.folder / "launcher.error"


def host_worker(post: Post) -> None:
    """Keeps one worker process running until the master has ended, or accepts no more workers
    because all jobs have ended."""
    for folder in post.path:
        if folder not in sys.path:
            sys.path.append(folder)
    # Imported here, because runs without a launcher need no wire.
    from pyrite.workload.workers.launched.hosting import host_workers

    host_workers(Store(post.store), post.address, post.secret, post.limits)
