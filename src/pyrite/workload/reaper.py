"""The reaper's program: ends the processes that it was told of when who told it is gone, however
that happened.

It is run as a file by itself, with nothing loaded but a few modules of Python's own, so that it
starts at once. It is told by lines: `+7` a session, `-7` that one no more, `*7 99` the process 7
that started at 99, `.` that all is well and it may go.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Seen:
    """A process as the system lists it."""

    def __init__(self, pid: int, parent: int, session: int, started: str) -> None:
        self.pid = pid
        self.parent = parent
        self.session = session
        self.started = started


def all_processes(*, with_dead: bool = False) -> Iterator[Seen]:
    """The processes of this machine; on demand also the dead that nobody has asked about yet."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if with_dead or fields[0] not in (b"Z", b"X"):
                yield Seen(int(name), int(fields[1]), int(fields[3]), fields[19].decode())


def main() -> None:
    sessions: set[int] = set()
    single: set[tuple[int, str]] = set()
    for line in iter(sys.stdin.readline, ""):
        kind, rest = line[0], line[1:].split()
        if kind == ".":
            return
        if kind == "*":
            single.add((int(rest[0]), rest[1]))
        elif kind == "+":
            sessions.add(int(rest[0]))
        else:
            sessions.discard(int(rest[0]))
    refused: set[int] = set()
    while found := [
        p.pid for p in all_processes() if p.session in sessions or (p.pid, p.started) in single
    ]:
        found = [pid for pid in found if pid not in refused]
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            except OSError:  # a program that became another user
                refused.add(pid)
        time.sleep(0.005)


if __name__ == "__main__":
    main()
