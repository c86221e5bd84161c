"""The processes that run beside an instance: a coordinator, and a process for each peer. They end
with the process that started them."""

from __future__ import annotations

import json
import logging
import signal
import sys
from typing import Any, NoReturn, TextIO

from pyrite.durable.hosts.coordinating import coordinate
from pyrite.durable.hosts.peering import live_as_peer
from pyrite.durable.parts.spark_part import NewDriver
from pyrite.owners import die_with_parent


def main(arguments: list[str], orders: TextIO, new_driver: NewDriver) -> None:
    """`arguments` are the role and the place. The first line of `orders` has the rest. `new_driver`
    makes what runs a job on Spark."""
    role, place = arguments
    config: dict[str, Any] = json.loads(orders.readline())
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
        live_as_peer(place, config.get("collections"), new_driver=new_driver)


def _exit(number: int, frame: object) -> NoReturn:
    sys.exit(0)
