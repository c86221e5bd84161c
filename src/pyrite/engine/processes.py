"""What an execution tells about a process that it runs in."""

from __future__ import annotations

import os
import socket
from functools import cache
from typing import Any

from pyrite.system.resident import resident_bytes


def this_process(member: str) -> dict[str, Any]:
    """What `Execution.members` tells about this process, by the name or number of its member."""
    return {
        "member": member,
        "host": host_name(),
        "pid": os.getpid(),
        "memory_bytes": resident_bytes(),
    }


@cache
def host_name() -> str:
    return socket.gethostname()
