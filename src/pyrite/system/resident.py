"""How much memory a process takes."""

from __future__ import annotations

import os
import resource
import sys
from typing import Final

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int | None = None) -> int:
    """The resident memory of a process, by default of this one; 0 if there is no such process. On
    systems without /proc, the most that this process has taken so far.

    >>> resident_bytes() > 1 << 20
    True
    """
    try:
        with open(f"/proc/{pid or 'self'}/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError):  # a process that is ending has no numbers
        if pid is not None or os.path.exists("/proc/self/statm"):
            return 0
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most << 10
