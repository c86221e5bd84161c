"""On the driver: hears what the tasks of one run tell."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from pyrite.forks import repair_after_fork
from pyrite.spark.live.tallies import Tallies, Told
from pyrite.spark.live.telling import Where
from pyrite.spark.liveness import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyrite.wire.hearing import Ear

logger = logging.getLogger("pyrite.spark")

TELL_SECONDS: Final = 1.0
MESSAGES_PER_SECOND: Final = 500
"""The tasks of a job with very many members tell less often, so that the driver can listen."""


class Hearing:
    """Hears the tasks of a run from `open` to `close`. What it has heard stays."""

    def __init__(self) -> None:
        self._tallies = Tallies(TELL_SECONDS)
        self._ear: Ear | None = None
        self._lock = threading.Lock()
        repair_after_fork(self)

    def open(self, spark: SparkSession, members: int) -> Where | None:
        """Begins to listen. Returns what the tasks must know; None if they could not reach this
        process, as over Spark Connect."""
        if is_connect(spark):
            return None
        from pyrite.wire.hearing import Ear
        from pyrite.wire.keys import keys_from, new_secret

        seconds = max(TELL_SECONDS, members / MESSAGES_PER_SECOND)
        keys = keys_from(new_secret(), "tasks")
        self._tallies = Tallies(seconds, members)
        try:
            host, interface = addresses_of(spark.sparkContext)
            self._ear = Ear(keys, interface, self._take)
        except Exception:  # it is only about metrics
            logger.debug("the driver cannot listen to the tasks of a job", exc_info=True)
            return None
        return Where(f"{host}:{self._ear.port}", *keys, seconds)

    def close(self) -> None:
        """It never raises."""
        ear, self._ear = self._ear, None
        try:
            if ear is not None:
                ear.close()
        except Exception:  # the user's functions may have closed its files
            logger.debug("the driver cannot stop listening to tasks", exc_info=True)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._ear = None

    def metrics(self, order: Sequence[str]) -> dict[str, Any]:
        """What is known of the vertices so far, in this order."""
        with self._lock:
            return self._tallies.metrics(order, monotonic())

    def of_task(self, section: int, member: int) -> Mapping[str, Any]:
        with self._lock:
            return self._tallies.of_task(section, member)

    def members(self) -> list[dict[str, Any]]:
        """The processes that run tasks now."""
        if self._ear is None:
            return []
        with self._lock:
            return self._tallies.members(monotonic())

    def _take(self, message: bytes) -> None:
        told = Told.of(message)
        with self._lock:
            self._tallies.take(told, monotonic())


def addresses_of(context: Any) -> tuple[str, str]:
    """The name by which tasks reach this process, and the address of the interface to listen at."""
    if str(context.master).startswith("local") and "cluster" not in str(context.master):
        return "127.0.0.1", "127.0.0.1"
    conf = context.getConf()
    host = str(conf.get("spark.driver.host"))
    interface = socket.gethostbyname(str(conf.get("spark.driver.bindAddress", host)))
    return host, "*" if interface == "0.0.0.0" else interface
