"""Whether a process that was written down is still the same and alive, and an event for its end."""

from __future__ import annotations

import os
import select
import time
from dataclasses import dataclass
from math import inf

LONGEST_SECONDS = 100_000  # what the system can wait for at a time has a limit


@dataclass(frozen=True, slots=True)
class Identity:
    """A process: its number alone may be given to another one later, so the time of its start
    belongs to it."""

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
        """Waits until the process is gone. False if it is not by then."""
        try:
            file = os.pidfd_open(self.pid)
        except (OSError, AttributeError):
            return not self.is_alive
        try:
            if not self.is_alive:
                return True
            watch = select.poll()  # unlike select, whatever the number of the file
            watch.register(file, select.POLLIN)
            give_up = inf if seconds is None else time.monotonic() + seconds
            while (left := give_up - time.monotonic()) > LONGEST_SECONDS:
                if watch.poll(LONGEST_SECONDS * 1000):
                    return True
            return bool(watch.poll(max(0.0, left) * 1000))
        finally:
            os.close(file)

    def signal(self, number: int) -> bool:
        """Sends a signal, if it is still the same process."""
        if not self.is_alive:
            return False
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        return True


NOBODY = Identity(0, "")


def _start_of(pid: int) -> str:
    """When the process started, in the kernel's count; empty if there is none, or it is only
    waiting to be collected."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
