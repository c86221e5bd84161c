"""The process of a member that a local cluster starts, and that ends with its owner."""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn, TextIO

import zmq

from pyrite.cluster.member import Member
from pyrite.exchange.driving import Driver
from pyrite.owners import die_with_parent
from pyrite.telemetry.logs import from_environment as log_from_environment
from pyrite.wire.keys import keys_from
from pyrite.wire.sockets import Limits

HOST = "127.0.0.1"
BIND_SECONDS = 5.0


def run_member(
    config: dict[str, Any], orders: TextIO, reports: TextIO, driver: Callable[[], Driver]
) -> None:
    """Runs a member until its owner is gone, or sends SIGTERM."""
    die_with_parent(config["owner"])
    signal.signal(signal.SIGTERM, _exit)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))  # the owner may have blocked it
    logging.basicConfig(
        level=config["log_level"], format="%(levelname)s %(name)s member %(process)d: %(message)s"
    )
    log_from_environment()
    member = Member(
        keys_from(config["secret"]),
        cooperative_threads=config["cooperative_threads"],
        collections=config["collections"],
        limits=Limits(**config["limits"]),
        driver=driver,
    )
    port = _bind(member, config["port"])
    print("listening", port, file=reports, flush=True)
    members = tuple(json.loads(orders.readline()))
    member.join(
        f"{HOST}:{port}",
        members,
        lambda complete: print("complete", int(complete), file=reports, flush=True),
    )
    try:
        orders.read()  # until the owner is gone, or has closed it
    finally:
        member.close()


def _bind(member: Member, port: int) -> int:
    """Listens. The port of the incarnation before may not be free at once."""
    give_up = time.monotonic() + BIND_SECONDS
    while True:
        try:
            return member.bind(HOST, port)
        except zmq.ZMQError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.02)


def _exit(number: int, frame: object) -> NoReturn:
    sys.exit(0)
