"""Amounts of cores and of memory: what users write, what the machine has, and how it is shown.

Both are integers inside, so that sums are exact: thousandths of a core, and bytes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pyrite.workload.system.numbers import is_number, is_whole

_UNITS = {
    unit: 1000**power if len(unit) < 3 else 1024**power
    for power, units in enumerate((("b",), ("kb", "kib"), ("mb", "mib"), ("gb", "gib")))
    for unit in units
} | {"tb": 1000**4, "tib": 1024**4}
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def cores(value: object) -> int:
    """Thousandths of a core. Raises ValueError if the value is no number of cores."""
    if is_number(value) and value >= 0.001:
        return round(value * 1000)
    raise ValueError("cpus must be a number of cores above 0, such as 2 or 0.5")


def memory(value: object) -> int:
    """Bytes. Raises ValueError if the value is no amount of memory.

    >>> memory("2 GB"), memory("512MB"), memory("1.5 GiB"), memory(100)
    (2000000000, 512000000, 1610612736, 100)
    """
    if is_whole(value, least=1):
        return value
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    unit = _UNITS.get(found[2].lower()) if found is not None else None
    size = round(float(found[1]) * unit) if found is not None and unit is not None else 0
    if size:
        return size
    raise ValueError("memory must be a text such as '2 GB' or '512 MB', or a number of bytes")


def cores_text(thousandths: int) -> str:
    return f"{thousandths / 1000:g}"


def memory_text(size: int) -> str:
    """
    >>> memory_text(2_300_000_000), memory_text(512_000_000), memory_text(100)
    ('2.3 GB', '512 MB', '100 bytes')
    """
    for unit, factor in (("TB", 1000**4), ("GB", 1000**3), ("MB", 1000**2), ("kB", 1000)):
        if size >= factor:
            return f"{size / factor:.4g} {unit}"
    return f"{size} bytes"


def cores_of_machine() -> int:
    return 1000 * len(os.sched_getaffinity(0))


def memory_of_machine() -> int:
    """Of the machine, or of the container if that has a limit."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        limit = "max"
    return min(size, int(limit)) if limit.isdigit() else size
