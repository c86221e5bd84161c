"""Kills processes with everything below them. As a program, it is the reaper: it does so for the
processes that were registered with it when its parent process has died, for whatever reason.

It runs as a script of its own and imports only a few modules of the standard library, so that it
starts quickly. It reads one command per line: `+7` registers the leader 7 of a session, `-7`
removes it, `*7 99` registers the process 7 with the start time 99, and `.` ends the reaper without
killing anything."""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KILL_SECONDS = 2.0  # a process that is blocked in the kernel does not die at once
_LISTS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # most kernels do


class Seen:
    """A process in the process table."""

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        self.pid = pid
        self.is_dead = fields[0] in (b"Z", b"X")
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.started = fields[19].decode()


def seen(pid: int) -> Seen | None:
    """The process with this id, which may be a zombie; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return Seen(pid, file.read().rpartition(b")")[2].split())
    except OSError:
        return None


def kill_families(leaders: set[int]) -> None:
    """Kills leaders of sessions, and all processes that they started, directly or not.

    A leader that lives has adopted the orphans among these, so they are all below it. It is
    stopped and killed last: else the orphans would be adopted elsewhere. If it has died, what is
    left of its session is looked up in the process table."""
    others = leaders - {os.getpid()}
    for pid in filter(_leads, others):
        _send(pid, signal.SIGSTOP)
    _kill_until_none(lambda: {below for pid in filter(_leads, leaders) for below in _below(pid)})
    living = set(filter(_leads, leaders))
    for pid in living & others:
        _send(pid, signal.SIGKILL)
    if dead := leaders - living:
        _kill_until_none(lambda: _left_of(dead))


def kill_children(kept: set[int]) -> None:
    """Kills and reaps the children of this process except those in `kept`. What was below them
    comes to this process, if it adopts orphans, and is killed too."""

    def others() -> set[int]:
        found = {pid for pid in children_of(os.getpid()) if pid not in kept}
        return {pid for pid in found if not _is_reaped(pid)}

    _kill_until_none(others)


def children_of(pid: int) -> list[int]:
    """The children of a process, also the zombies."""
    if not _LISTS_CHILDREN:
        return [process.pid for process in _all_processes() if process.parent == pid]
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:  # it has ended
        pass
    return found


def _kill_until_none(find: Callable[[], set[int]]) -> None:
    """Kills what `find` finds until it finds none, or none that this process may kill."""
    give_up = time.monotonic() + KILL_SECONDS
    refused: set[int] = set()
    while (found := find() - refused) and time.monotonic() < give_up:
        refused |= {pid for pid in found if not _send(pid, signal.SIGKILL)}
        time.sleep(0.0005)


def _send(pid: int, number: int) -> bool:
    """Sends a signal. Returns False if that is refused: it is a program that changed its user."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def _is_reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _leads(pid: int) -> bool:
    """Whether it lives and is the leader of a session, not another process with its old number."""
    one = seen(pid)
    return one is not None and not one.is_dead and one.session == pid


def _below(pid: int) -> Iterator[int]:
    """The living processes below a process."""
    for child in children_of(pid):
        if (one := seen(child)) and not one.is_dead:
            yield child
            yield from _below(child)


def _left_of(sessions: set[int]) -> set[int]:
    """The living processes of these sessions and those below them, by one look at the process
    table."""
    table = [process for process in _all_processes() if not process.is_dead]
    family = set(sessions)
    while more := {
        process.pid
        for process in table
        if process.pid not in family and (process.parent in family or process.session in family)
    }:
        family |= more
    return family - sessions


def _all_processes() -> Iterator[Seen]:
    for name in os.listdir("/proc"):
        if name.isdigit() and (process := seen(int(name))):
            yield process


def main() -> None:
    leaders: set[int] = set()
    single: set[tuple[int, str]] = set()
    for line in iter(sys.stdin.readline, ""):
        kind, rest = line[0], line[1:].split()
        if kind == ".":
            return
        if kind == "*":
            single.add((int(rest[0]), rest[1]))
        elif kind == "+":
            leaders.add(int(rest[0]))
        else:
            leaders.discard(int(rest[0]))
    for pid, started in single:
        if (one := seen(pid)) and one.started == started:
            _send(pid, signal.SIGKILL)
    kill_families(leaders)


if __name__ == "__main__":
    main()
