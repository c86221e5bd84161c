"""Whether a Spark session can still be used, and how to get rid of one that cannot: PySpark keeps
one Java process, one context and one session for the whole of a Python process."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pyrite.errors import PyriteError
from pyrite.forks import repair_after_fork
from pyrite.spark.masters import answers

logger = logging.getLogger("pyrite.spark")


def is_connect(spark: Any) -> bool:
    """Whether a session talks to Spark over Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def how_it_ended(spark: Any) -> str | None:
    """How a session came to its end, in words that follow "the session"; None if it lives."""
    if not is_connect(spark):
        return _how_context_ended(spark.sparkContext)
    if spark.is_stopped:
        return "was stopped"
    return None if answers(spark.client._channel) else "lost its Spark Connect server"


def stop_quietly(spark: Any) -> None:
    """Stops a session, in whatever state it is."""
    if how_it_ended(spark) is None:
        spark.stop()
    else:
        drop(spark)


def drop(spark: Any) -> None:
    """Clears what PySpark keeps of a session that has ended."""
    if is_connect(spark):
        spark.release_session_on_close = False  # it would ask the server, for ten minutes
        spark.stop()
    elif spark_of_process.starting.acquire(blocking=False):
        try:
            forget_what_ended()
        finally:
            spark_of_process.starting.release()
    # Otherwise another session is starting: its start has cleared everything first, and what
    # PySpark keeps now is not finished yet.


def forget_what_ended() -> None:
    """Clears what PySpark keeps of a context that has ended, and of a Java process that has died:
    it would not start another."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None and _how_context_ended(context) is not None:
        forget(context)
    gateway: Any = SparkContext._gateway
    if gateway is not None and not _java_answers(gateway):
        logger.debug("the Java process of Spark is gone%s", _how_java_ended(gateway))
        with suppress(Exception):
            gateway.shutdown()
        with suppress(Exception):
            gateway.proc.stdin.close()
        SparkContext._gateway = SparkContext._jvm = None


def forget(context: Any) -> None:
    """Stops a context that no session stands for, or whose Java side is gone."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context.stop()
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


class LaunchConf:
    """The settings that PySpark's Java process was launched with. It would apply them to every
    session that is started in it later, whatever that one asks for."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()

    def clear(self) -> None:
        """Has the Java process forget them, if it runs. Every session brings all of its own."""
        from pyspark import SparkContext

        jvm: Any = SparkContext._jvm
        for name in self._names if jvm is not None else ():
            jvm.java.lang.System.clearProperty(name)
        self._names = ()

    @contextmanager
    def launched_with(self, conf: Mapping[str, str]) -> Iterator[None]:
        """Around the start of a session with this configuration, which may launch Java."""
        from pyspark import SparkContext

        launches = SparkContext._gateway is None
        try:
            yield
        finally:
            if launches:
                # A session without a name cannot be started: one that has none takes this.
                self._names = tuple(name for name in conf if name != "spark.app.name")


launch_conf = LaunchConf()


def _how_context_ended(context: Any) -> str | None:
    if context._jsc is None:
        return "was stopped"
    try:
        stopped = bool(context._jsc.sc().isStopped())
    except Exception:  # Py4J raises many kinds when nobody is at the other end
        return f"lost its Java process{_how_java_ended(context._gateway)}"
    return "was stopped" if stopped else None


def _java_answers(gateway: Any) -> bool:
    try:
        gateway.jvm.java.lang.System.nanoTime()
    except Exception:
        return False
    return True


def _how_java_ended(gateway: Any) -> str:
    process = getattr(gateway, "proc", None)
    if process is None:
        return ""
    try:
        code = process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return " (it does not answer)"
    if code < 0:
        return f" (it was killed by signal {-code})"
    return f" (it ended with exit code {code})"


class SparkOfProcess:
    """What this process has of Spark: at most one, its own or the one of the process that it was
    forked from."""

    def __init__(self) -> None:
        self.starting = threading.Lock()
        """Held during a start, since two instances must not start Spark at the same time."""
        self._inherited_from: int | None = None
        repair_after_fork(self)

    def after_fork(self) -> None:
        context: Any = sys.modules.get("pyspark.core.context")
        started = context is not None and context.SparkContext._gateway is not None
        if started or self.starting.locked():
            self._inherited_from = os.getppid()
        self.starting = threading.Lock()

    def check_is_own(self, session_of: int | None) -> None:
        """Raises PyriteError if Spark, or the session in question, is the one of a parent."""
        parent = session_of if session_of is not None else self._inherited_from
        if parent is not None:
            raise PyriteError(
                f"Spark was started in process {parent}, which this process was forked from, and "
                "the connection to it cannot be shared. Run jobs on Spark in that process, or "
                "start this one with the 'spawn' method of multiprocessing"
            )


spark_of_process = SparkOfProcess()
