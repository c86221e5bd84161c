"""The processes that a `Keeper` keeps running: coordinators, and a process for each peer. They end
with the process that started them."""

from __future__ import annotations

import json
import logging
import signal
import sys
from typing import Any, NoReturn, TextIO

from pyrite.durable.hosts.coordinating import coordinate
from pyrite.durable.hosts.peering import live_as_peer
from pyrite.owners import die_with_parent


def main(arguments: list[str], orders: TextIO) -> None:
    """`arguments` are the role and the place, for people who look for the process. The first line
    of `orders` has the rest, secrets too."""
    role = arguments[0]
    config: dict[str, Any] = json.loads(orders.readline())
    place = config["place"]
    die_with_parent(config["owner"])
    signal.signal(signal.SIGTERM, _exit)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner, who ends this process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT))
    logging.basicConfig(
        level=config["log_level"],
        format=f"%(asctime)s %(levelname)s %(name)s {role} %(process)d: %(message)s",
    )
    if role == "coordinator":
        coordinate(place)
    else:
        live_as_peer(place, config["collections"])


def _exit(number: int, frame: object) -> NoReturn:
    sys.exit(0)
