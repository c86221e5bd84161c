"""Keeps coordinators and peers running, each in a process of its own: it starts them again when
they die, and they end with their owner."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyrite.durable.store.deployment import hidden

logger = logging.getLogger("pyrite.durable")

LOOK_SECONDS: Final = 0.05
STOP_SECONDS: Final = 3.0
SOON: Final = 1.0
"""A process that has died within so many seconds is started again only after a pause."""
LONGEST_PAUSE: Final = 5.0

# The path comes first: it may be what makes this package importable. The module that runs the
# program stands above this one: it knows Spark, too, and gives peers their driver of Spark jobs.
_BOOT: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.readline()); "
    "from pyrite.local_peer import main; main(sys.argv[1:], sys.stdin)"
)


@dataclass(slots=True)
class _Child:
    role: str
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = 0.0
    not_before: float = field(default=0.0)


class Keeper:
    """Keeps a process running for each of `roles`: "coordinator" or "peer". `collections` is the
    URL of the Redis with the named maps and lists of a deployment."""

    def __init__(self, place: str, roles: Sequence[str], *, collections: str | None = None) -> None:
        self._place = place
        self._collections = collections
        self._children = [_Child(role) for role in roles]
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._started = threading.Event()
        # The system ends the processes with the thread that has started them, so it is this one.
        self._keeper: threading.Thread | None = None

    def start(self) -> None:
        """Returns when the processes are started, which is before they are ready."""
        with self._lock:
            if self._keeper is None:
                self._keeper = threading.Thread(
                    target=self._keep, name="pyrite-durable-keeper", daemon=True
                )
                self._keeper.start()
        self._started.wait()

    def processes(self) -> list[tuple[str, int]]:
        """The role and the number of each process that runs."""
        return [
            (child.role, child.process.pid)
            for child in self._children
            if child.process is not None and child.process.poll() is None
        ]

    def close(self) -> None:
        """Ends the processes. What they had not committed is done by others, or when the folder is
        opened again."""
        self._stop.set()
        if self._keeper is not None:
            self._keeper.join()

    def _keep(self) -> None:
        # Ctrl-C reaches all processes of a terminal. A process inherits what is blocked here, so it
        # is not interrupted before it has said that Ctrl-C is for its owner.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        try:
            while not self._stop.is_set():
                for child in self._children:
                    self._look_after(child)
                self._started.set()
                self._stop.wait(LOOK_SECONDS)
        finally:
            self._started.set()
            self._end()

    def _look_after(self, child: _Child) -> None:
        now = time.monotonic()
        if child.process is not None:
            code = child.process.poll()
            if code is None:
                return
            if code >= 0 and now - child.started < SOON:  # it was not killed, so it cannot run
                child.pause = min(max(0.1, 2 * child.pause), LONGEST_PAUSE)
                child.not_before = now + child.pause
            else:
                child.pause = 0.0
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            logger.info(
                "the %s %d has ended %s; another is started", child.role, child.process.pid, how
            )
            child.process = None
        if now >= child.not_before:
            try:
                child.process = launch(child.role, self._place, collections=self._collections)
            except Exception as error:
                logger.error("a %s cannot be started: %s", child.role, error)
                child.not_before = now + LONGEST_PAUSE
            child.started = now

    def _end(self) -> None:
        running = [c.process for c in self._children if c.process is not None]
        for process in running:
            process.terminate()
        give_up = time.monotonic() + STOP_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, give_up - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def launch(role: str, place: str, *, collections: str | None = None) -> subprocess.Popen[bytes]:
    """A coordinator or a peer. It ends with the thread that called this."""
    process = subprocess.Popen(
        [sys.executable, "-c", _BOOT, role, hidden(place)], stdin=subprocess.PIPE, close_fds=True
    )
    config: dict[str, Any] = {
        "owner": os.getpid(),
        "log_level": logging.getLogger().getEffectiveLevel(),
        "place": place,
        "collections": collections,
    }
    assert process.stdin is not None
    try:
        with process.stdin as orders:
            orders.write(
                f"{json.dumps([str(entry) for entry in sys.path])}\n{json.dumps(config)}\n".encode()
            )
    except BrokenPipeError:
        pass  # it has died already, and is started again
    return process
