"""The Spark session of an instance: the user's, or one that is started when the first job needs
it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrite.errors import PyriteError
from pyrite.spark.java import check_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_MASTER = "local[*, 4]"
"""All cores, and four tries for a task, as on a cluster: plain local[*] gives up at the first."""

DEFAULT_CONF: Mapping[str, str] = {
    "spark.app.name": "pyrite",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "512",
}
LOCAL_CONF: Mapping[str, str] = {
    # Over TCP each task waits 40 ms for a delayed acknowledgement. On a cluster the folder for the
    # sockets may have too long a path, so there it is for the user to set.
    "spark.python.unix.domain.socket.enabled": "true",
}


_LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()


_starting = threading.Lock()
"""A process has one Spark; two instances must not start it at the same time."""


class LazySession:
    """Gives the session, starting it when it is first asked for. A session that was given is left
    as it was."""

    def __init__(
        self, *, master: str | None, conf: Mapping[str, str] | None, spark: SparkSession | None
    ) -> None:
        if spark is not None and (master is not None or conf is not None):
            raise PyriteError(
                "give either spark=, a session that exists, or spark_master= and spark_conf= for a "
                "new one; not both"
            )
        self._master = master
        self._conf = dict(conf or {})
        self._is_given = spark is not None
        self._session: Future[SparkSession] | None = None
        if spark is not None:
            self._session = Future()
            self._session.set_result(spark)
        self._lock = threading.Lock()
        self._stopped = False

    def get(self) -> SparkSession:
        return self.starting().result()

    def starting(self) -> Future[SparkSession]:
        """The session to come. Whoever waits for it may give up; the start goes on, for those who
        come later."""
        with self._lock:
            if self._stopped and not self._is_given:
                raise PyriteError("this instance is closed; open another with pyrite.instance()")
            if self._session is None or (
                self._session.done() and self._session.exception() is not None
            ):
                self._session = Future()
                threading.Thread(
                    target=self._fulfil,
                    args=(self._session,),
                    name="pyrite-spark-start",
                    daemon=True,
                ).start()
            return self._session

    def stop(self) -> None:
        """Stops the session if it was started here; one that is starting, as soon as it has."""
        with self._lock:
            self._stopped = True
            session = self._session
        if session is not None and not self._is_given and session.exception() is None:
            session.result().stop()

    def _fulfil(self, session: Future[SparkSession]) -> None:
        try:
            with _starting:
                started = self._start()
        except BaseException as error:
            session.set_exception(error)
        else:
            session.set_result(started)

    def _start(self) -> SparkSession:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        master = self._master or os.environ.get("SPARK_MASTER") or DEFAULT_MASTER
        if master.startswith("sc://"):
            remote: Any = SparkSession.builder.remote(master)
            return remote.config(map=self._conf).getOrCreate()  # type: ignore[no-any-return]
        check_java()
        if master.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if SparkContext._active_spark_context is not None:
            raise PyriteError(
                "this process already has a Spark session, and Spark allows one; pass it: "
                "pyrite.instance(spark=SparkSession.active())"
            )
        builder: Any = SparkSession.builder.master(master)
        ours = {
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING}",
            **DEFAULT_CONF,
            **(LOCAL_CONF if master.startswith("local") else {}),
        }
        return builder.config(map={**ours, **self._conf}).getOrCreate()  # type: ignore[no-any-return]


def is_connect(spark: Any) -> bool:
    """Whether a session talks to Spark over Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def default_members(spark: Any) -> int:
    """How many members a job has if it does not say: as many tasks as the session runs at a
    time."""
    if is_connect(spark):
        from pyspark.sql.functions import spark_partition_id

        return max(1, int(spark.range(1 << 16).select(spark_partition_id()).distinct().count()))
    return max(1, int(spark.sparkContext.defaultParallelism))
