"""The processes that a `Keeper` keeps running: coordinators, and a process for each peer. They end
with the process that started them."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TextIO

from pyrite.durable.hosts.coordinating import coordinator_at
from pyrite.durable.hosts.peering import Stopping, live_as_peer
from pyrite.durable.parts.environment import own_this_process
from pyrite.durable.parts.spark_part import NewDriver
from pyrite.errors import PyriteError
from pyrite.owners import die_with_parent
from pyrite.telemetry.logs import from_environment as log_from_environment

logger = logging.getLogger("pyrite.durable")

PATIENCE: Final = 1.0
"""Seconds after SIGTERM for what runs to stop."""


def main(arguments: list[str], orders: TextIO, new_driver: NewDriver) -> None:
    """`arguments` are the role and the place, for people who look for the process. The first line
    of `orders` has the rest, secrets too. `new_driver` makes what runs a job on Spark."""
    role = arguments[0]
    config: dict[str, Any] = json.loads(orders.readline())
    die_with_parent(config["owner"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner, who ends this process
    logging.basicConfig(
        level=config["log_level"],
        format=f"%(asctime)s %(levelname)s %(name)s {role} %(process)d: %(message)s",
    )
    log_from_environment()
    try:
        _run(role, config, new_driver)
    except PyriteError as error:  # such that to try again is for whoever has corrected something
        logger.error("%s", error)
        sys.exit(1)


def _run(role: str, config: Mapping[str, Any], new_driver: NewDriver) -> None:
    place = config["place"]
    if role == "coordinator":
        coordinator = coordinator_at(place)
        _at_sigterm(coordinator.stop)
        coordinator.run()
    else:
        own_this_process()
        stopping = Stopping()
        _at_sigterm(stopping.stop)
        live_as_peer(place, config["collections"], new_driver=new_driver, stopping=stopping)


def _at_sigterm(stop: Callable[[], None]) -> None:
    """Calls `stop` on another thread at SIGTERM, and ends the process if that takes long. Nothing
    is raised: it would be raised in a function of the user's, and look like an error of the
    job."""
    came, to = os.pipe()
    os.set_blocking(to, False)
    signal.set_wakeup_fd(to, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT))
    # A signal that comes to a child before it has forgotten them would be written into this pipe.
    os.register_at_fork(
        before=lambda: _mask(signal.SIG_BLOCK),
        after_in_parent=lambda: _mask(signal.SIG_UNBLOCK),
        after_in_child=_forget_signals,
    )
    threading.Thread(target=_end, args=(came, stop), name="end", daemon=True).start()


def _forget_signals() -> None:
    """In a process that a function of the user's forks, such as a worker of multiprocessing: its
    signals are its own. Else it could not be ended, and its SIGTERM would end the peer."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _mask(signal.SIG_UNBLOCK)


def _mask(how: int) -> None:
    signal.pthread_sigmask(how, (signal.SIGTERM,))


def _end(came: int, stop: Callable[[], None]) -> None:
    while os.read(came, 1) != bytes([signal.SIGTERM]):
        pass  # a signal that a function of the user's has asked for
    stop()
    threading.Event().wait(PATIENCE)
    os._exit(0)
