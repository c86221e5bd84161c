"""An executor whose calls are Spark tasks, one each: transient workers on any Spark cluster, without a file system that all share."""

from __future__ import annotations

import pickle
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, TypeVar

import cloudpickle

from pyrite.errors import PyriteError
from pyrite.functions import message_of
from pyrite.spark.session import LazySession
from pyrite.workload.executors import KillableFuture, WorkerDied, answer_call

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")

CANCEL_SECONDS = 0.2
_CRASHED = b"crashed"


class SparkExecutor(Executor):
    """Runs calls on Spark: on `spark`, a session that exists, or on `master` (default: this machine). `max_workers` calls at a time."""

    def __init__(self, spark: SparkSession | None = None, *, master: str | None = None, max_workers: int | None = None) -> None:
        if max_workers is not None and (isinstance(max_workers, bool) or not isinstance(max_workers, int) or max_workers < 1):
            raise PyriteError(f"max_workers must be a whole number above 0; got {max_workers!r}")
        self._session = LazySession(master=master, conf=None, spark=spark)
        self._calls: queue.SimpleQueue[tuple[KillableFuture, bytes] | None] = queue.SimpleQueue()
        self._max_workers = max_workers
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_shut_down = False

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        with self._lock:
            if self._is_shut_down:
                raise RuntimeError("this executor is shut down")
            future = KillableFuture()
            self._calls.put((future, cloudpickle.dumps((fn, args, kwargs), protocol=5)))
            if len(self._threads) < (self._max_workers or 32):
                thread = threading.Thread(target=self._serve, name="spark executor", daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            self._is_shut_down = True
            for _ in self._threads:
                self._calls.put(None)
        if wait:
            for thread in self._threads:
                thread.join()
        self._session.stop()

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            future, data = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                answer = self._run(future, data)
            except BaseException as error:
                future.set_exception(error)
                continue
            succeeded, value = pickle.loads(answer)
            if succeeded:
                future.set_result(value)
            else:
                future.set_exception(value)

    def _run(self, future: KillableFuture, data: bytes) -> bytes:
        spark = self._session.get()
        call = _Tagged(spark)
        future.begin(call.cancel)
        try:
            with call:
                frame = spark.createDataFrame([(data,)], "call binary").coalesce(1)
                rows = frame.mapInArrow(_answer_calls, "answer binary").collect()
        except Exception as error:
            raise WorkerDied(f"the Spark task was ended ({_first_line(message_of(error))})") from None
        finally:
            future.over()
        answer = bytes(rows[0]["answer"])
        if answer == _CRASHED:
            raise WorkerDied("the Spark task's Python worker died")
        return answer


class _Tagged:
    """What Spark runs inside the block can be cancelled, from any thread."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._tag = f"pyrite-{uuid.uuid4().hex}"
        self._is_over = threading.Event()

    def __enter__(self) -> None:
        if self._is_connect:
            self._spark.addTag(self._tag)
        else:
            self._spark.sparkContext.addJobTag(self._tag)

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._is_connect:
            self._spark.removeTag(self._tag)
        else:
            self._spark.sparkContext.removeJobTag(self._tag)

    def cancel(self) -> None:
        """Asks until it has come through: a job that is not yet known to Spark cannot be cancelled."""
        threading.Thread(target=self._cancel, name="spark cancel", daemon=True).start()

    def _cancel(self) -> None:
        while not self._is_over.is_set():
            try:
                if self._is_connect:
                    self._spark.interruptTag(self._tag)
                else:
                    self._spark.sparkContext.cancelJobsWithTag(self._tag)
            except Exception:
                pass  # the session is being stopped
            time.sleep(CANCEL_SECONDS)

    @property
    def _is_connect(self) -> bool:
        return "connect" in type(self._spark).__module__


def _answer_calls(batches: Iterator[Any]) -> Iterator[Any]:
    """In a Spark task. Spark would run a call again whose Python worker died; whether to do that is for the master to say."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    is_retry = context is not None and context.attemptNumber() > 0
    for batch in batches:
        calls = batch.column(0).to_pylist()
        answers = [_CRASHED if is_retry else answer_call(call) for call in calls]
        yield pa.RecordBatch.from_arrays([pa.array(answers, pa.binary())], names=["answer"])


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]
