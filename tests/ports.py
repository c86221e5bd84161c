"""Ports for the servers of tests."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

# Below those that systems give to connections: one of these could have the port of a server that is
# started again.
PORTS = range(10_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens at, each only once."""
    found: list[int] = []
    with ExitStack() as stack:
        while len(found) < count:
            port = random.SystemRandom().choice(PORTS)
            try:
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            found.append(port)
    return found


def free_port() -> int:
    return free_ports(1)[0]
