"""Peers inside Spark: the tasks of one Spark job keep a peer each, in a process beside the Python
worker of the task. They end with the job."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pyrite.closing import Closing
from pyrite.durable.hosts.keeper import launch
from pyrite.durable.hosts.places import is_folder
from pyrite.errors import PyriteError
from pyrite.functions import message_of, shorten

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("pyrite.durable")

LOOK_SECONDS: Final = 0.1
STOP_SECONDS: Final = 30.0
INSIST_SECONDS: Final = 0.2


class HostedPeers(Closing):
    """So many peers of the durable jobs at `place`, each in a slot of Spark. Use it as a context
    manager, or call its `close()`: until then Spark cannot use these slots for anything else.

    `collections` is the URL of the Redis with the named maps and lists of a deployment. Spark
    starts a peer again if its executor is lost. Do not submit jobs with `on="spark"` where these
    are the only peers: a task of Spark cannot start jobs on Spark.
    """

    def __init__(
        self, spark: SparkSession, place: str, *, peers: int, collections: str | None = None
    ) -> None:
        if isinstance(peers, bool) or not isinstance(peers, int) or peers < 1:
            raise PyriteError(f"peers must be a whole number above 0; got {shorten(peers)}")
        try:
            context = spark.sparkContext
        except Exception as error:
            raise PyriteError(
                "peers need a classic Spark session; one of Spark Connect cannot host them"
            ) from error
        if is_folder(place) and not str(context.master).startswith("local"):
            raise PyriteError(
                f"the folder '{place}' is on this machine only, and the tasks of"
                f" {context.master} are on others; use a deployment (zk://...)"
            )
        slots = context.defaultParallelism
        if peers > slots:
            raise PyriteError(
                f"{peers} peers need {peers} slots of Spark at a time, and there are {slots}; ask"
                " for fewer peers, or give Spark more cores"
            )
        self._context = context
        self._tag = f"pyrite-peers-{uuid.uuid4().hex}"
        self._closing = threading.Event()
        self._job = threading.Thread(
            target=self._run, args=(place, peers, collections), name="pyrite-hosting", daemon=True
        )
        self._job.start()

    @property
    def are_running(self) -> bool:
        return self._job.is_alive()

    def close(self) -> None:
        """Ends the peers. What they had not committed is done by others."""
        self._closing.set()
        give_up = time.monotonic() + STOP_SECONDS
        while self._job.is_alive() and time.monotonic() < give_up:
            # Again and again: Spark cancels only jobs that have begun.
            self._context.cancelJobsWithTag(self._tag)
            self._job.join(INSIST_SECONDS)

    def _run(self, place: str, peers: int, collections: str | None) -> None:
        def host(numbers: Iterable[int]) -> Iterable[int]:
            _keep_a_peer(place, collections)
            return ()

        try:
            self._context.addJobTag(self._tag)
            self._context.setJobDescription(f"{peers} peers of durable jobs")
            self._context.parallelize(range(peers), peers).mapPartitions(host).count()
        except Exception as error:
            if not self._closing.is_set():
                logger.error("the peers inside Spark have ended: %s", message_of(error))


def _keep_a_peer(place: str, collections: str | None) -> Any:
    """The task: until Spark ends it, and its process with it, which takes the peer along."""
    from pyspark import TaskContext

    while True:
        peer = launch("peer", place, collections=collections)
        try:
            while peer.poll() is None:
                task = TaskContext.get()
                if task is not None and getattr(task, "isInterrupted", lambda: False)():
                    return
                time.sleep(LOOK_SECONDS)
        finally:
            if peer.poll() is None:
                peer.terminate()
                peer.wait()
