"""The program of the reaper: kills the processes that were registered with it when its parent
process has died, for whatever reason.

It runs as a script of its own and imports only a few modules of the standard library, so that it
starts quickly. It reads one command per line: `+7` registers the session 7, `-7` removes it,
`*7 99` registers the process 7 with the start time 99, and `.` ends the reaper without killing
anything."""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Seen:
    """A process in the process table."""

    def __init__(self, pid: int, parent: int, session: int, started: str) -> None:
        self.pid = pid
        self.parent = parent
        self.session = session
        self.started = started


def all_processes(*, with_dead: bool = False) -> Iterator[Seen]:
    """The processes of this machine; with `with_dead`, also the zombies."""
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
            except OSError:  # a program that changed its user
                refused.add(pid)
        time.sleep(0.005)


if __name__ == "__main__":
    main()
