"""Which version of a module this process has in memory: the digest of the source that the module
was loaded from."""

from __future__ import annotations

import functools
import os
import sys
import time
from pathlib import Path
from types import ModuleType

from pyrite.workload.input.fingerprints.digests import digest

UNKNOWN = b""

_known: dict[str, tuple[ModuleType, bytes]] = {}
_absent: dict[str, int] = {}  # when a module was not loaded yet


def version_in_memory(name: str) -> bytes | None:
    """UNKNOWN if the source was changed after this process had started, or after the module was
    seen not to be loaded: it may have been loaded before the change or after it. None if the module
    is not loaded, or has no source file. Once a version is known, it does not matter what happens
    to the file."""
    module = sys.modules.get(name)
    if module is None:
        _absent[name] = time.time_ns()
        return None
    known = _known.get(name)
    if known is not None and known[0] is module:
        return known[1]
    path = source_file(module)
    if path is None:
        return None
    try:
        found = digest(Path(path).read_bytes())
        if was_changed(path, since=_absent.get(name, 0)):  # afterwards, so that none is missed
            found = UNKNOWN
    except NotADirectoryError:  # it is inside of an archive
        return None
    except OSError:
        found = UNKNOWN
    remember(name, found)
    return found


def remember(name: str, version: bytes) -> None:
    """The module is known to have been loaded from this version."""
    _known[name] = (sys.modules[name], version)


def source_file(module: ModuleType) -> str | None:
    path = getattr(module, "__file__", None)
    return path if isinstance(path, str) and path.endswith(".py") else None


def was_changed(path: str, *, since: int = 0) -> bool:
    """Whether a file was changed, or put in its place, after this process had started, or after a
    later time."""
    # The clock of a file system is behind by some milliseconds. A change that this does not see is
    # no harm: it was made just before the module was loaded, and then this version was loaded; or
    # just after it, and then this version is not taken for that of the plan.
    status = os.stat(path)
    return max(status.st_mtime_ns, status.st_ctime_ns) > max(since, _started(os.getpid()))


@functools.cache
def _started(pid: int) -> int:
    """When this process was started or forked, in nanoseconds since 1970, or a tick earlier."""
    with open("/proc/self/stat") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])  # since the start of the machine
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time_ns() - int(age * 1e9)
