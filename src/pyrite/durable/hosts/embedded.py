"""The coordinator and the peers of an instance with a folder: started with the first durable job,
started again when one dies, and gone when their owner is."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Final

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


class Embedded:
    """Keeps one coordinator and so many peers running, each in a process of its own."""

    def __init__(self, folder: str, peers: int) -> None:
        self._folder = folder
        self._children = [_Child("coordinator"), *(_Child("peer") for _ in range(peers))]
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
        """Ends the processes. What they had not committed is done when the folder is opened
        again."""
        self._stop.set()
        if self._keeper is not None:
            self._keeper.join()

    def _keep(self) -> None:
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
            logger.info("the %s %d has ended (%d)", child.role, child.process.pid, code)
            child.process = None
        if now >= child.not_before:
            try:
                child.process = launch(child.role, self._folder)
            except OSError as error:
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
        [sys.executable, "-c", _BOOT, role, place], stdin=subprocess.PIPE, close_fds=True
    )
    config: dict[str, Any] = {
        "owner": os.getpid(),
        "log_level": logging.getLogger().getEffectiveLevel(),
        "collections": collections,
    }
    assert process.stdin is not None
    try:
        with process.stdin as orders:
            orders.write(f"{json.dumps(sys.path)}\n{json.dumps(config)}\n".encode())
    except BrokenPipeError:
        pass  # it has died already, and is started again
    return process
