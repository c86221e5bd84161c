"""Tells whether a process that was recorded earlier is still alive, and waits for its end."""

from __future__ import annotations

import os
import select
import time
from dataclasses import dataclass
from math import inf

from pyrite.system.reaper import seen

LONGEST_SECONDS = 0.5
"""How long a single wait takes at most. A signal that arrives just before a wait does not interrupt
it: without a limit, Ctrl-C at that moment would have no effect."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Identifies a process by its id and the time of its start, because the system may give the id
    to another process later."""

    pid: int
    started: str

    @staticmethod
    def of(pid: int) -> Identity:
        return Identity(pid, _start_of(pid))

    @staticmethod
    def here() -> Identity:
        return Identity.of(os.getpid())

    @property
    def is_alive(self) -> bool:
        return bool(self.started) and _start_of(self.pid) == self.started

    def wait(self, seconds: float | None) -> bool:
        """Waits until the process has ended. Returns False if it has not ended in time."""
        try:
            file = os.pidfd_open(self.pid)
        except (OSError, AttributeError):
            return not self.is_alive
        try:
            if not self.is_alive:
                return True
            watch = select.poll()  # select cannot wait for descriptors above 1023
            watch.register(file, select.POLLIN)
            give_up = inf if seconds is None else time.monotonic() + seconds
            while (left := give_up - time.monotonic()) > LONGEST_SECONDS:
                if watch.poll(LONGEST_SECONDS * 1000):
                    return True
            return bool(watch.poll(max(0.0, left) * 1000))
        finally:
            os.close(file)

    def signal(self, number: int) -> bool:
        """Sends a signal, if the process is still alive. Returns whether it was sent."""
        if not self.is_alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


NOBODY = Identity(0, "")


def _start_of(pid: int) -> str:
    """The start time of the process in clock ticks, as the kernel gives it; empty if there is no
    such process, or only a zombie."""
    process = seen(pid)
    return "" if process is None or process.is_dead else process.started
