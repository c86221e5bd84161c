"""A forked child closes its copies of its parent's connections. As long as any process holds one,
the peer does not see that the parent has died, and its port cannot be used again."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Final

_OWN_FILES: Final = Path("/proc/self/fd")


def close_inherited(listening: int | None, dialed: Collection[str]) -> None:
    """Closes the TCP sockets of a listener's port, and those to addresses that were dialed. Called
    in the child."""
    ports = {int(address.rpartition(":")[2]) for address in dialed}
    if not _OWN_FILES.exists():
        return
    for file in [int(entry) for entry in os.listdir(_OWN_FILES)]:
        try:
            if stat.S_ISSOCK(os.fstat(file).st_mode) and _is_ours(file, listening, ports):
                os.close(file)
        except OSError:  # the one that listed the files, or a socket without an address
            continue


def _is_ours(file: int, listening: int | None, dialed: Collection[int]) -> bool:
    probe = socket.socket(fileno=file)
    try:
        if probe.family not in (socket.AF_INET, socket.AF_INET6):
            return False
        return probe.getsockname()[1] == listening or probe.getpeername()[1] in dialed
    finally:
        probe.detach()
