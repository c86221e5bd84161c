"""An executor that runs each call as a Spark task: transient workers on any Spark cluster, without
a shared file system."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyrite.errors import PyriteError
from pyrite.functions import message_of
from pyrite.spark.liveness import is_connect
from pyrite.spark.session import DEFAULT_MASTER, LazySession
from pyrite.workload.system.numbers import is_whole
from pyrite.workload.workers.transient.executors import (
    KillableExecutor,
    KillableFuture,
    WorkerDied,
    answer_call,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CALLS_AT_A_TIME = 32
CANCEL_SECONDS = 0.2
_CRASHED = b"crashed"
_ALL_CANCELLED = "cancelled as part of cancellation of all jobs"


class SparkExecutor(KillableExecutor):
    """Runs calls on Spark: on the existing session `spark`, or on a new session with this `master`
    (default: local mode). Up to `max_workers` calls run at the same time."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        master: str | None = None,
        max_workers: int = CALLS_AT_A_TIME,
    ) -> None:
        if not is_whole(max_workers, least=1):
            raise PyriteError(f"max_workers must be an integer above 0; got {max_workers!r}")
        super().__init__(max_workers)
        self._session = LazySession(master=master, conf=None, spark=spark)
        self.is_here = _is_local(spark, master)

    def make_call(self, future: KillableFuture, call: bytes) -> bytes:
        answer = None
        while answer is None:
            answer = self._try_call(future, call)
        if answer == _CRASHED:
            raise WorkerDied("the Python worker of its Spark task died while it ran")
        return answer

    def _try_call(self, future: KillableFuture, call: bytes) -> bytes | None:
        """None if all jobs of the session were cancelled: PySpark does that when the user presses
        Ctrl-C, which must not end the call."""
        spark = self._session.get()
        tagged = _Tagged(spark)
        future.begin(tagged.cancel)
        try:
            with tagged:
                frame = spark.createDataFrame([(call,)], "call binary").coalesce(1)
                rows = frame.mapInArrow(_answer_calls, "answer binary").collect()
        except Exception as error:
            if _ALL_CANCELLED in str(error) and not future.is_killed:
                return None
            raise WorkerDied(
                f"its Spark task failed while it ran ({_first_line(message_of(error))})"
            ) from None
        return bytes(rows[0]["answer"])

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait, cancel_futures=cancel_futures)
        self._session.stop()


class _Tagged:
    """A block whose Spark jobs can be cancelled from any thread."""

    def __init__(self, spark: SparkSession) -> None:
        self._tag = f"pyrite-{uuid.uuid4().hex}"
        self._is_over = threading.Event()
        self._stop: Callable[[str], Any]
        if is_connect(spark):
            self._add, self._remove, self._stop = spark.addTag, spark.removeTag, spark.interruptTag
        else:
            context = spark.sparkContext
            self._add, self._remove = context.addJobTag, context.removeJobTag
            self._stop = context.cancelJobsWithTag

    def __enter__(self) -> None:
        self._add(self._tag)

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._remove(self._tag)

    def cancel(self) -> None:
        """Repeats the request until the block has ended, because Spark cannot cancel a job that has
        not started yet."""
        threading.Thread(target=self._cancel, name="spark cancel", daemon=True).start()

    def _cancel(self) -> None:
        while not self._is_over.is_set():
            with suppress(Exception):  # the session is stopping
                self._stop(self._tag)
            time.sleep(CANCEL_SECONDS)


def _answer_calls(batches: Iterator[Any]) -> Iterator[Any]:
    """Runs in a Spark task. If a Python worker died, Spark starts the task again; the call must not
    run again then, because the master decides about retries."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    is_retry = context is not None and context.attemptNumber() > 0
    for batch in batches:
        calls = batch.column(0).to_pylist()
        answers = [_CRASHED if is_retry else answer_call(call) for call in calls]
        yield pa.RecordBatch.from_arrays([pa.array(answers, pa.binary())], names=["answer"])


def _is_local(spark: SparkSession | None, master: str | None) -> bool:
    if spark is None:
        return (master or os.environ.get("SPARK_MASTER") or DEFAULT_MASTER).startswith("local")
    return not is_connect(spark) and str(spark.sparkContext.master).startswith("local")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]
