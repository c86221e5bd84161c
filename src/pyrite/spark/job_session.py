"""The session that the stages of a job run in: it shares the user's SparkContext and has its own
configuration, so that what suits our packets does not change the user's queries."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pyrite.spark.liveness import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB_CONF = {
    # Adaptive execution plans again after every exchange and starts a Spark job for each. It cannot
    # improve anything here: the number of tasks is fixed, and rows are packets of our own.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "512",
    # A worker that crashes in a native library says where.
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}

_made: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()
_making = threading.Lock()


def job_session(spark: SparkSession) -> SparkSession:
    """The session for the stages of jobs that neither read nor write DataFrames of the user's.

    Over Spark Connect it is the user's own: another would be another connection.
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
    """A new session makes `rdd.toDF()` its own; give that back to the user's."""
    from pyspark.sql import session as module

    patch = getattr(module, "_monkey_patch_RDD", None)
    if patch is not None:
        patch(spark)
