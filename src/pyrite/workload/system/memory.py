"""How much memory a process and all its descendants use, and how much they have taken since some
moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyrite.system.reaper import children_of
from pyrite.system.resident import resident_bytes


class Usage(NamedTuple):
    """The memory of one process, in bytes. Of the pages that it shares with others, `resident` has
    all, and `proportional` its part."""

    resident: int
    proportional: int


_NOTHING = Usage(0, 0)
_NOBODY: Mapping[int, Usage] = {}


def usage_of_family(pid: int) -> dict[int, Usage]:
    """What each of a process and its descendants uses now, by the id of the process."""
    return {member: Usage(resident_bytes(member), _proportional(member)) for member in _family(pid)}


def memory_of_family(pid: int, *, enough: int = 0, since: Mapping[int, Usage] = _NOBODY) -> int:
    """The bytes that a process and its descendants have in memory, without those that they had
    before: `since`.

    Pages that processes share are counted for each, unless that is more than `enough`: then they
    are counted once, which takes longer.
    """
    family = _family(pid)
    before = [since.get(member, _NOTHING) for member in family]
    resident = sum(map(resident_bytes, family)) - sum(usage.resident for usage in before)
    if resident <= enough or len(family) == 1:
        return max(0, resident)
    proportional = sum(map(_proportional, family)) - sum(usage.proportional for usage in before)
    return max(0, min(resident, proportional))


def _family(pid: int) -> list[int]:
    found = [pid]
    for member in found:  # grows while it is read
        found.extend(children_of(member))
    return found


def _proportional(pid: int) -> int:
    """The memory of a process, with its part of the pages that it shares."""
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return resident_bytes(pid)


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
