"""Members that Spark places and starts: the tasks of one barrier job, which find each other by its
all-gather.

Each of them keeps a connection to the driver, over the same wire and with the same secret as among
members, and ends when that ends.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pyrite.closing import Closing
from pyrite.cluster.client import Client
from pyrite.cluster.member import Member
from pyrite.collections import redis_at
from pyrite.errors import PyriteError
from pyrite.wire import messages as m
from pyrite.wire.identity import Identity
from pyrite.wire.keys import keys_from, new_secret
from pyrite.wire.wire import Connected, Lost, NotReached, Received, Wire

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("pyrite.cluster")

START_SECONDS: Final = 120.0


class HostedCluster(Closing):
    """A cluster of members inside Spark. Use it as a context manager, or call its `close()`: until
    then each member holds a slot of Spark.

    If one member dies, Spark ends all of them. Then `on_end` is called, and `check` raises.
    """

    def __init__(
        self,
        spark: SparkSession,
        members: int,
        *,
        secret: str | None = None,
        cooperative_threads: int | None = None,
        collections: str = "memory",
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        redis_at(collections)  # raises if it is neither memory nor a URL
        context = spark.sparkContext
        slots = context.defaultParallelism
        if members > slots:
            raise PyriteError(
                f"{members} members need {members} slots of Spark at a time, and there are "
                f"{slots}; ask for fewer members, or give Spark more cores"
            )
        self.secret = secret if secret is not None else new_secret()
        host = context.getConf().get("spark.driver.host") or "127.0.0.1"
        self._wire = Wire(keys_from(self.secret), Identity())
        port = self._wire.listen(socket.gethostbyname(host), 0)
        is_local = str(context.master).startswith("local")
        path = (*(entry for entry in sys.path if entry), os.getcwd())
        post = Post(f"{host}:{port}", self.secret, cooperative_threads, collections, is_local, path)
        self._addresses: tuple[str, ...] = ()
        self._has_ended = False
        self._lost_one = False
        self._error: BaseException | None = None
        self._on_end = on_end
        self._changed = threading.Condition()
        self._closing = False
        self._listening = threading.Thread(target=self._listen, name="pyrite-hosted", daemon=True)
        self._job = threading.Thread(
            target=self._run, args=(context, members, post), name="pyrite-hosting", daemon=True
        )
        self._listening.start()
        self._job.start()
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    @property
    def addresses(self) -> list[str]:
        """`host:port` of each member."""
        return list(self._addresses)

    def client(self) -> Client:
        """A client of this cluster."""
        return Client(self._addresses, keys_from(self.secret))

    def check(self) -> None:
        """Raises PyriteError if the members have ended."""
        if self._has_ended and not self._closing:
            why = "a member has died" if self._lost_one else self._error
            raise PyriteError(
                f"the members inside Spark have ended: {why or 'they do not reach the driver'}"
            )

    def close(self) -> None:
        """Ends the members, and with them the barrier job."""
        self._closing = True
        self._wire.wake()
        self._listening.join()
        self._job.join(timeout=START_SECONDS)

    def _wait(self) -> None:
        def is_settled() -> bool:
            self.check()
            return bool(self._addresses)

        with self._changed:
            if not self._changed.wait_for(is_settled, START_SECONDS):
                raise PyriteError(f"Spark did not start the members within {START_SECONDS:g} s")

    def _run(self, context: Any, members: int, post: Post) -> None:
        try:
            context.parallelize(range(members), members).barrier().mapPartitions(
                post.host
            ).collect()
        except BaseException as error:
            self._error = error
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
        if not self._closing:
            self._on_end()

    def _listen(self) -> None:
        """Until the cluster is closed, or a member is lost: then the others end with their
        connection to the driver. So do members that Spark starts in its place, since clients do not
        know their addresses."""
        self._wire.own()
        while not self._closing and not self._lost_one:
            for event in self._wire.turn():
                if isinstance(event, Received) and isinstance(event.message, m.Call):
                    with self._changed:
                        self._addresses = pickle.loads(event.message.request)
                        self._changed.notify_all()
                elif isinstance(event, Lost) and self._addresses:
                    self._lost_one = True
            if not self._lost_one:
                self._wire.park(None)
        self._wire.close()


@dataclass(frozen=True, slots=True)
class Post:
    """What a task must know to host a member."""

    driver: str
    secret: str
    cooperative_threads: int | None
    collections: str
    is_local: bool
    path: tuple[str, ...]
    """The folders that the driver imports from. Tasks that see them import the same modules."""

    def host(self, _: Iterator[int]) -> Iterator[int]:
        """Runs a member until the driver is gone. Called in a task of a barrier job."""
        sys.path += [each for each in self.path if each not in sys.path and os.path.isdir(each)]
        from pyspark import BarrierTaskContext

        context = BarrierTaskContext.get()
        rank = context.partitionId()
        own = context.getTaskInfos()[rank].address.rpartition(":")[0]
        host = "127.0.0.1" if self.is_local else own
        keys = keys_from(self.secret)
        member = Member(
            keys,
            cooperative_threads=self.cooperative_threads,
            driver=_no_driver,
            collections=self.collections,
        )
        port = member.bind(socket.gethostbyname(host), 0)
        addresses = tuple(context.allGather(f"{host}:{port}"))
        complete = threading.Event()
        wire = Wire(keys, Identity())

        def on_complete(connected: bool) -> None:
            if connected:
                complete.set()
                wire.wake()

        member.join(f"{host}:{port}", addresses, on_complete)
        try:
            self._stay(wire, complete, pickle.dumps(addresses) if rank == 0 else b"")
        finally:
            member.close()
            wire.close()
        return iter(())

    def _stay(self, wire: Wire, complete: threading.Event, addresses: bytes) -> None:
        """Tells the driver where the members are, and stays until it is gone."""
        wire.own()
        wire.dial(self.driver)
        connection = None
        told = not addresses
        while True:
            for event in wire.turn():
                if isinstance(event, Connected):
                    connection = event.connection
                elif isinstance(event, (Lost, NotReached)):
                    return
            if connection is not None and complete.is_set() and not told:
                told = True
                connection.send(m.Call(0, addresses))
            wire.park(None)


def _no_driver() -> NoReturn:
    raise PyriteError(
        "this member is a task of Spark, and a task cannot start jobs on Spark; run this job with "
        "pyrite.instance(spark_master=...) on the same master, or on members that LocalCluster, "
        "`pyrite cluster` without --spark-master, or `pyrite member` has started"
    )
