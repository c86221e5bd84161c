"""What a job leaves in its worker: processes are killed; threads cannot be, so a worker with such a
thread is replaced. So is one in which many files are open.

Some stay, because they serve later jobs of the worker: those of a Spark session and of Pyrite's
engine, of which a process has one each, and the two processes that `multiprocessing` starts once.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import time

from pyrite.workload.system import processes

PACKAGES = ("py4j", "pyrite", "pyspark", "tqdm")
"""Whose threads stay. That of tqdm only looks after progress bars that are shown."""

THREAD_SECONDS = 0.05
"""How long threads may take that are ending, for example those of a pool that was shut down."""

FILES_MAX = 100
"""How many open files jobs may leave until the worker is replaced. They cannot be closed: some may
belong to what stays."""


class Leftovers:
    """Knows the threads of the worker itself, at the time when this object is made."""

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())
        self._thread_count = _thread._count()
        self._free_file = _free_file()

    def end(self) -> bool:
        """Returns whether nothing is left. Costs about a microsecond if the job left nothing."""
        processes.end_children(but=_processes_that_stay)
        if _free_file() > self._free_file + FILES_MAX:
            return False
        return _thread._count() == self._thread_count or self._threads_end()

    def _threads_end(self) -> bool:
        give_up = time.monotonic() + THREAD_SECONDS
        staying = 0
        for thread in set(threading.enumerate()) - self._threads:
            if _stays(thread):
                staying += 1
            else:
                thread.join(max(0.0, give_up - time.monotonic()))
        # A thread that was started without `threading` only shows in the count.
        while _thread._count() > self._thread_count + staying:
            if time.monotonic() > give_up:
                return False
            time.sleep(0.001)
        return True


def _free_file() -> int:
    """The lowest free descriptor."""
    found = os.dup(0)
    os.close(found)
    return found


def _processes_that_stay() -> set[int]:
    modules = sys.modules
    found: list[int | None] = []
    if (pyspark := modules.get("pyspark")) is not None:
        gateway = getattr(pyspark.SparkContext, "_gateway", None)
        found.append(getattr(getattr(gateway, "proc", None), "pid", None))
    if (tracker := modules.get("multiprocessing.resource_tracker")) is not None:
        found.append(tracker._resource_tracker._pid)
    if (server := modules.get("multiprocessing.forkserver")) is not None:
        found.append(server._forkserver._forkserver_pid)
    return {pid for pid in found if pid is not None}


def _stays(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    owners = (type(thread), type(getattr(target, "__self__", None)))
    return any(owner.__module__.partition(".")[0] in PACKAGES for owner in owners)
