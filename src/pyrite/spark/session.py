"""The Spark session of an instance: the user's, or one that is started when the first job needs it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
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


_LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()


_starting = threading.Lock()
"""A process has one Spark; two instances must not start it at the same time."""


class LazySession:
    """Gives the session, starting it when it is first asked for. A session that was given is left as it was."""

    def __init__(self, *, master: str | None, conf: Mapping[str, str] | None, spark: SparkSession | None) -> None:
        if spark is not None and (master is not None or conf is not None):
            raise PyriteError(
                "give either spark=, a session that exists, or spark_master= and spark_conf= for a new one; not both"
            )
        self._master = master
        self._conf = dict(conf or {})
        self._given = spark
        self._own: SparkSession | None = None
        self._lock = threading.Lock()
        self._stopped = False

    def get(self) -> SparkSession:
        if self._given is not None:
            return self._given
        with self._lock:
            if self._stopped:
                raise PyriteError("this instance is closed; open another with pyrite.instance()")
            if self._own is None:
                with _starting:
                    self._own = self._start()
            return self._own

    def start_in_background(self) -> None:
        threading.Thread(target=self._start_quietly, name="pyrite-spark-start", daemon=True).start()

    def stop(self) -> None:
        """Stops the session if it was started here."""
        with self._lock:
            self._stopped = True
            if self._own is not None:
                self._own.stop()
                self._own = None

    def _start_quietly(self) -> None:
        try:
            self.get()
        except Exception:  # the first job will meet it again, and tell
            pass

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
                "this process already has a Spark session, and Spark allows one; pass it: pyrite.instance(spark=SparkSession.active())"
            )
        builder: Any = SparkSession.builder.master(master)
        quiet = {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING}"}
        return builder.config(map={**quiet, **DEFAULT_CONF, **self._conf}).getOrCreate()  # type: ignore[no-any-return]


def is_connect(spark: Any) -> bool:
    """Whether a session talks to Spark over Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def default_members(spark: Any) -> int:
    """How many members a job has if it does not say: as many tasks as the session runs at a time."""
    if is_connect(spark):
        from pyspark.sql.functions import spark_partition_id

        return max(1, int(spark.range(1 << 16).select(spark_partition_id()).distinct().count()))
    return max(1, int(spark.sparkContext.defaultParallelism))
