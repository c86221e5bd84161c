"""How much memory a process and all its descendants use."""

from __future__ import annotations

import os

_PAGE = os.sysconf("SC_PAGE_SIZE")


def memory_of_family(pid: int, *, enough: int = 0) -> int:
    """The bytes that a process and its descendants have in memory.

    Pages that processes share are counted for each, unless that is more than `enough`: then they
    are counted once, which takes longer.
    """
    family = _family(pid)
    resident = sum(map(_resident, family))
    if resident <= enough or len(family) == 1:
        return resident
    return min(resident, sum(map(_proportional, family)))


def _family(pid: int) -> list[int]:
    found = [pid]
    for member in found:  # grows while it is read
        found.extend(_children(member))
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            children.extend(map(int, _read(f"/proc/{pid}/task/{thread}/children").split()))
    except OSError:  # it has ended
        pass
    return children


def _resident(pid: int) -> int:
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if len(fields) > 1 else 0


def _proportional(pid: int) -> int:
    """The memory of a process, with its part of the pages that it shares."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return _resident(pid)


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
