"""A cluster of member processes on this machine: started when first used, started again when one
dies, and gone when their owner is."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

from pyrite.closing import Closing
from pyrite.cluster.client import Client
from pyrite.cluster.hosts.process import HOST
from pyrite.collections import redis_at
from pyrite.errors import PyriteError
from pyrite.functions import shorten
from pyrite.wire.keys import keys_from, new_secret
from pyrite.wire.sockets import Limits

logger = logging.getLogger("pyrite.cluster")

START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 2.0
FIRST_RESTART_SECONDS: Final = 0.0
LAST_RESTART_SECONDS: Final = 2.0
MOST_MEMBERS: Final = 512

# The path comes first: it may be what makes this package importable. The module that runs the
# member stands above this one: it knows Spark, too, and gives the member its driver of normal jobs.
_BOOT: Final = """import json, sys
orders, reports = open(int(sys.argv[1])), open(int(sys.argv[2]), "w")
config = json.loads(orders.readline())
sys.path[:] = config["path"]
from pyrite.local_member import main
main(config, orders, reports)
"""


class LocalCluster(Closing):
    """Members on this machine. Use it as a context manager, or call its `close()` when done.

    The processes are started when they are needed first. Whoever knows `secret` may run code in
    them; they get it by a pipe, and it is nowhere else. The same holds for the URL of a Redis in
    `collections`, which may have a password.

    A member that gets a normal job starts a Spark session for it, on `spark_master` (default: local
    mode) with the settings in `spark_conf`.
    """

    def __init__(
        self,
        members: int,
        *,
        secret: str | None = None,
        cooperative_threads: int | None = None,
        spark_master: str | None = None,
        spark_conf: Mapping[str, str] | None = None,
        collections: str = "memory",
        limits: Limits | None = None,
    ) -> None:
        redis_at(collections)  # raises if it is neither memory nor a URL
        if (
            isinstance(members, bool)
            or not isinstance(members, int)
            or not (1 <= members <= MOST_MEMBERS)
        ):
            raise PyriteError(
                f"members must be a whole number from 1 to {MOST_MEMBERS}; got {shorten(members)}"
            )
        self.secret = secret if secret is not None else new_secret()
        keys_from(self.secret)  # raises if it is none
        self._count = members
        self._config = {
            "secret": self.secret,
            "cooperative_threads": cooperative_threads,
            "collections": collections,
            "limits": asdict(limits or Limits()),
            "spark_master": spark_master,
            "spark_conf": dict(spark_conf or {}),
            "owner": os.getpid(),
        }
        self._limits = limits
        self._lock = threading.Lock()
        self._keeper: Keeper | None = None
        self._closed = False

    @property
    def addresses(self) -> list[str]:
        """`host:port` of each member."""
        return list(self._started().addresses)

    @property
    def pids(self) -> list[int]:
        """The process of each member, in the order of the addresses."""
        return self._started().pids

    def client(self) -> Client:
        """A client of this cluster."""
        return Client(self.addresses, keys_from(self.secret), self._limits)

    def wait_until_complete(self, seconds: float = START_SECONDS) -> None:
        """Waits until all members run and are connected to each other: after one has died, until
        the next incarnation is."""
        self._started().wait_until_complete(seconds)

    def close(self) -> None:
        """Ends the members."""
        if os.getpid() != self._config["owner"]:
            return  # in a fork: the members are the other process' own
        with self._lock:
            self._closed = True
            keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()

    def _started(self) -> Keeper:
        if os.getpid() != self._config["owner"]:
            raise PyriteError(
                "this cluster belongs to the process that this one was forked from; make another"
            )
        with self._lock:
            if self._closed:
                raise PyriteError("this cluster is closed; make another LocalCluster")
            if self._keeper is None:
                keeper = Keeper(self._count, self._config)
                try:
                    keeper.wait_until_complete(START_SECONDS)
                except BaseException:
                    keeper.close()
                    raise
                self._keeper = keeper
            return self._keeper

    def __repr__(self) -> str:
        return f"<local cluster of {self._count} members>"


class _Process:
    """One member's process, with the pipes to and from it."""

    def __init__(self, config: dict[str, Any]) -> None:
        orders, self._orders = os.pipe()
        self.reports, reports = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, str(orders), str(reports)],
                stdin=subprocess.DEVNULL,
                pass_fds=(orders, reports),
                start_new_session=True,
            )
        finally:
            os.close(orders)
            os.close(reports)
        self.pid = self._process.pid
        self.ended = os.pidfd_open(self.pid)
        self.complete = False
        """Whether it says that it is connected to all others."""
        self._unread = b""
        self.tell(config)

    def tell(self, order: Any) -> None:
        try:
            os.write(self._orders, json.dumps(order).encode() + b"\n")
        except BrokenPipeError:  # it has died; that will be seen
            pass

    def read(self) -> list[list[str]]:
        """The reports that have come, in words."""
        self._unread += os.read(self.reports, 1 << 16)
        *lines, self._unread = self._unread.split(b"\n")
        return [line.decode().split() for line in lines]

    def terminate(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.ended, signal.SIGTERM)

    def close(self, give_up: float) -> None:
        """Waits for its end, which comes by force if it takes too long. What it has started ends
        with it: Spark by itself would not before it has finished starting."""
        if not select.select([self.ended], [], [], max(0.0, give_up - time.monotonic()))[0]:
            self._process.kill()
            select.select([self.ended], [], [])
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)  # before `wait`, after which the number is free
        self._process.wait()
        for file in (self._orders, self.reports, self.ended):
            os.close(file)


class Keeper:
    """Keeps members running, on a thread of its own. The thread matters: the system ends a member
    with the thread that started it."""

    def __init__(self, count: int, config: dict[str, Any]) -> None:
        self._config = config
        self.addresses: tuple[str, ...] = ()
        self._processes: list[_Process] = []
        self._restart_waits = [FIRST_RESTART_SECONDS] * count
        self._changed = threading.Condition()
        self._error: Exception | None = None
        self._wake, self._woken = os.pipe()
        self._closing = False
        self._thread = threading.Thread(
            target=self._run, args=(count,), name="pyrite-keeper", daemon=True
        )
        self._thread.start()

    @property
    def pids(self) -> list[int]:
        with self._changed:
            return [process.pid for process in self._processes]

    def wait_until_complete(self, seconds: float) -> None:
        def is_complete() -> bool:
            if self._error is not None:
                raise self._error
            return bool(self.addresses) and all(process.complete for process in self._processes)

        with self._changed:
            if not self._changed.wait_for(is_complete, seconds):
                raise PyriteError(f"the members did not start within {seconds:g} s; see their log")

    def close(self) -> None:
        self._closing = True
        os.write(self._woken, b".")
        self._thread.join()
        os.close(self._wake)
        os.close(self._woken)

    def _run(self, count: int) -> None:
        try:
            self._start_all(count)
            while not self._closing:
                self._watch()
        except Exception as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()
        finally:
            for process in self._processes:
                process.terminate()
            give_up = time.monotonic() + STOP_SECONDS
            for process in self._processes:
                process.close(give_up)

    def _start_all(self, count: int) -> None:
        self._processes = [self._new(0) for _ in range(count)]
        ports = []
        for process in self._processes:
            lines: list[list[str]] = []
            while not lines and not self._closing:
                self._wait([process])
                lines = process.read()
                if not lines and not _is_alive(process):
                    raise PyriteError("a member process ended while it started; see its log")
            if self._closing:
                return
            ports.append(int(lines[0][1]))
        members = tuple(f"{HOST}:{port}" for port in ports)
        for process in self._processes:
            process.tell(members)
        with self._changed:
            self.addresses = members

    def _new(self, port: int) -> _Process:
        level = logging.getLogger("pyrite").getEffectiveLevel()
        return _Process({**self._config, "port": port, "path": sys.path, "log_level": level})

    def _wait(self, processes: list[_Process]) -> set[int]:
        watch = select.poll()
        watch.register(self._wake, select.POLLIN)
        for process in processes:
            watch.register(process.ended, select.POLLIN)
            watch.register(process.reports, select.POLLIN)
        return {file for file, _ in watch.poll()}

    def _watch(self) -> None:
        """Waits for reports and deaths, and starts again what died."""
        ready = self._wait(self._processes)
        for index, process in enumerate(self._processes):
            if process.reports in ready:
                for word, value in process.read():
                    if word == "complete":
                        with self._changed:
                            process.complete = value == "1"
                            self._restart_waits[index] = FIRST_RESTART_SECONDS
                            self._changed.notify_all()
            if process.ended in ready and not self._closing:
                self._restart(index)

    def _restart(self, index: int) -> None:
        logger.warning("member %s ended and is started again", self.addresses[index])
        self._processes[index].close(time.monotonic())
        wait = self._restart_waits[index]
        self._restart_waits[index] = min(LAST_RESTART_SECONDS, max(0.1, 2 * wait))
        if wait:
            select.select([self._wake], [], [], wait)
        process = self._new(int(self.addresses[index].rpartition(":")[2]))
        process.tell(self.addresses)
        with self._changed:
            self._processes[index] = process


def _is_alive(process: _Process) -> bool:
    return not select.select([process.ended], [], [], 0)[0]
