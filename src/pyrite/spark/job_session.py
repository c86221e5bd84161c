"""The Spark session that runs the sections of jobs. It shares the SparkContext of the user's
session but has its own configuration, so settings for Pyrite do not affect the user's queries."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pyrite.spark.liveness import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB_CONF = {
    # Adaptive execution plans again after every exchange, and starts a Spark job for each. It has
    # nothing to improve here: the number of tasks is fixed, and the rows are opaque packets.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "512",
    # A packet of batches may have 8 MB, and 512 of them would not fit into one batch of Arrow.
    "spark.sql.execution.arrow.maxBytesPerBatch": "32m",
    # If a worker crashes in a native library, its Python traceback is printed.
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}

_made: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()
_making = threading.Lock()


def job_session(spark: SparkSession) -> SparkSession:
    """The session for jobs that neither read nor write DataFrames of the user.

    Over Spark Connect it is the user's session, because a new session would need a new connection.
    """
    if is_connect(spark):
        return spark
    with _making:
        session = _made.get(spark)
        if session is None:
            session = spark.newSession()
            _leave_rdd_methods_to(spark)
            for name, value in JOB_CONF.items():
                session.conf.set(name, value)
            _made[spark] = session
        return session


def _leave_rdd_methods_to(spark: SparkSession) -> None:
    """Makes `rdd.toDF()` use the user's session again. Each new session takes it over."""
    from pyspark.sql import session as module

    patch = getattr(module, "_monkey_patch_RDD", None)
    if patch is not None:
        patch(spark)
