"""The Spark session of an instance: the user's, or one that is started when the first job needs
it."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrite.errors import PyriteError
from pyrite.forks import repair_after_fork
from pyrite.functions import shorten_text
from pyrite.spark.failures import (
    LONGEST_CAUSE,
    SparkError,
    cause_in,
    is_from_spark,
    text_of,
    was_stopped,
)
from pyrite.spark.java import check_java
from pyrite.spark.liveness import (
    drop,
    forget,
    forget_what_ended,
    how_it_ended,
    is_connect,
    launch_conf,
    spark_of_process,
    stop_quietly,
)
from pyrite.spark.masters import check_master, check_reachable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyrite.exchange.driving import SparkSettings

logger = logging.getLogger("pyrite.spark")

DEFAULT_MASTER = "local[*, 4]"
"""All cores, and four attempts per task, as on a cluster: plain local[*] allows only one."""

DEFAULT_CONF: Mapping[str, str] = {
    "spark.app.name": "pyrite",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "512",
    # A packet of batches may have 8 MB, and 512 of them would not fit into one batch of Arrow.
    "spark.sql.execution.arrow.maxBytesPerBatch": "32m",
    # A worker that crashes in a native library says where.
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}
LOCAL_CONF: Mapping[str, str] = {
    # Over TCP each task waits 40 ms for a delayed acknowledgement. On a cluster the folder for the
    # sockets may have too long a path, so there it is for the user to set.
    "spark.python.unix.domain.socket.enabled": "true",
}

CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""PySpark sets this variable with the first Connect session, and then refuses any other kind."""

_LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()


class LazySession:
    """Starts the session when it is first used, and starts another if that one was stopped from
    outside. A session that the user passed is never started or stopped here."""

    def __init__(
        self, *, master: str | None, conf: Mapping[str, str] | None, spark: SparkSession | None
    ) -> None:
        if spark is not None and (master is not None or conf is not None):
            raise PyriteError(
                "give either spark=, a session that exists, or spark_master= and spark_conf= for a "
                "new one; not both"
            )
        if master:
            check_master(master)
        self._master = master
        self._conf = dict(conf or {})
        self._is_given = spark is not None
        self._session: Future[SparkSession] | None = None
        if spark is not None:
            self._session = Future()
            self._session.set_result(spark)
        self._lock = threading.Lock()
        self._stopped = False
        self._set_connect_mode = False
        self._parent: int | None = None
        """The process that this one was forked from, if the session is that one's."""
        repair_after_fork(self)

    def get(self) -> SparkSession:
        return self.starting().result()

    def settings(self) -> SparkSettings:
        """What another process needs to start a session like this one."""
        from pyrite.exchange.driving import SparkSettings

        if self._is_given:
            raise PyriteError(
                "the peer that runs this job starts a Spark session of its own, and cannot use the "
                "one that was given to this instance; open the instance with "
                "pyrite.instance(spark_master=..., spark_conf=...)"
            )
        return SparkSettings(self._master or os.environ.get("SPARK_MASTER"), dict(self._conf))

    def starting(self) -> Future[SparkSession]:
        """A future of the session, which starts in the background. A caller that stops waiting does
        not stop the start."""
        with self._lock:
            if self._stopped and not self._is_given:
                raise PyriteError("this instance is closed; open another with pyrite.instance()")
            spark_of_process.check_is_own(self._parent)
            if self._session is None or self._must_start_again(self._session):
                self._session = Future()
                threading.Thread(
                    target=self._fulfil,
                    args=(self._session,),
                    name="pyrite-spark-start",
                    daemon=True,
                ).start()
            return self._session

    def how_it_ended(self) -> str | None:
        """How the session came to its end, in words; None if it lives, or has not started."""
        session = self._session
        if session is None or not session.done():
            return None
        return how_it_ended(session.result())

    def after_it(self, how: str, *, when: str = "") -> str:
        """A sentence about the end of the session: how it ended, and what comes next."""
        if self._is_given:
            return (
                f"the Spark session that was given to this instance {how}{when}; make a new "
                "session, and another instance with it: pyrite.instance(spark=...)"
            )
        return f"the Spark session of this instance {how}{when}; the next job starts a new one"

    def stop(self) -> None:
        """Stops the session if it was started here. If it is still starting, waits for that
        first."""
        with self._lock:
            self._stopped = True
            session = self._session
        if session is None or self._is_given or self._parent is not None:
            return
        if session.exception() is None:
            stop_quietly(session.result())
        self._leave_connect_mode()

    def after_fork(self) -> None:
        """The session, or its start, is the parent's."""
        self._lock = threading.Lock()
        if self._session is not None:
            self._parent = os.getppid()

    def _must_start_again(self, session: Future[SparkSession]) -> bool:
        how = self.how_it_ended()
        if how is None:
            return False
        if self._is_given:
            raise PyriteError(self.after_it(how))
        logger.warning("the Spark session %s; starting another", how)
        drop(session.result())
        return True

    def _fulfil(self, session: Future[SparkSession]) -> None:
        try:
            with spark_of_process.starting:
                started = self._start()
        except BaseException as error:
            with self._lock:
                self._session = None  # the next job tries again
            session.set_exception(error)
        else:
            session.set_result(started)

    def _start(self) -> SparkSession:
        master = self._master or os.environ.get("SPARK_MASTER") or DEFAULT_MASTER
        check_master(master)
        check_reachable(master)
        try:
            if master.startswith("sc://"):
                return self._start_connect(master)
            return self._start_classic(master)
        except Exception as error:
            if not is_from_spark(error):
                raise
            report = text_of(error)
            raise SparkError(
                f"Spark does not start on {master}: {_why_not_started(report)}", report
            ) from None

    def _start_connect(self, master: str) -> SparkSession:
        from pyspark.sql import SparkSession

        self._set_connect_mode = self._set_connect_mode or CONNECT_MODE not in os.environ
        try:
            remote: Any = SparkSession.builder.remote(master)
            return remote.config(map=self._conf).getOrCreate()  # type: ignore[no-any-return]
        except BaseException:
            self._leave_connect_mode()
            raise

    def _leave_connect_mode(self) -> None:
        if self._set_connect_mode:
            os.environ.pop(CONNECT_MODE, None)
            self._set_connect_mode = False

    def _start_classic(self, master: str) -> SparkSession:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        check_java()
        if master.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        forget_what_ended()
        if SparkContext._active_spark_context is not None:
            raise PyriteError(
                "this process already has a Spark session, and Spark allows one; pass it: "
                "pyrite.instance(spark=SparkSession.active())"
            )
        launch_conf.clear()
        conf = {
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING}",
            **DEFAULT_CONF,
            **(LOCAL_CONF if master.startswith("local") else {}),
            **self._conf,
        }
        builder: Any = SparkSession.builder.master(master).config(map=dict(conf))
        try:
            with launch_conf.launched_with(conf):
                return builder.getOrCreate()  # type: ignore[no-any-return]
        except BaseException:
            half_started: Any = SparkContext._active_spark_context
            if half_started is not None:
                forget(half_started)
            forget_what_ended()
            raise


def _why_not_started(report: str) -> str:
    if "JAVA_GATEWAY_EXITED" in report:
        return "its Java process ended before it was ready; what it printed is on stderr"
    if was_stopped(report):
        return "the master did not accept this application; look at the log of the master"
    return shorten_text(cause_in(report), LONGEST_CAUSE)


def default_members(spark: Any) -> int:
    """The default number of members of a job: the number of tasks that the session runs at a
    time."""
    if is_connect(spark):
        from pyspark.sql.functions import spark_partition_id

        return max(1, int(spark.range(1 << 16).select(spark_partition_id()).distinct().count()))
    return max(1, int(spark.sparkContext.defaultParallelism))
