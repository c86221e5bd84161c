"""The instance: where jobs are executed from, and where named maps and lists are."""

from __future__ import annotations

import builtins
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import wait
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from pyrite.collections import MemoryCollections, MemoryList, MemoryMap
from pyrite.dag import DAG
from pyrite.engine.execution import JobRun, Plan
from pyrite.engine.member import RunContext
from pyrite.engine.service import ExecutionService
from pyrite.errors import PyriteError
from pyrite.functions import shorten
from pyrite.job import Execution, Job, JobConfig
from pyrite.spark.session import LazySession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyrite.cluster.client import Client
    from pyrite.cluster.own import OwnCluster
    from pyrite.cluster.storage import RemoteList, RemoteMap

logger = logging.getLogger("pyrite")

CLOSING_SECONDS = 10.0


def instance(
    *,
    spark_master: str | None = None,
    spark_conf: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    start_spark: bool = False,
    cooperative_threads: int | None = None,
    members: int | None = None,
    collections: Literal["memory"] = "memory",
) -> Instance:
    """An instance in this process. Use it as a context manager, or call its `close()` when done.

    Normal jobs run on Spark: on a session that is started with the first of them (or at once, in
    the background, with `start_spark`), on `spark_master` (a master's URL, or `sc://` for Spark
    Connect; default: this machine) with `spark_conf`; or on `spark`, a session that exists.
    `cooperative_threads` is the size of the pool that runs light jobs: 1 by default, or the number
    of CPUs on a Python without a global lock. It is also the default parallelism of a vertex there.
    With `members`, light jobs run on that many processes of this machine, which are started with
    the first of them; named maps and lists are then in the memory of these.
    """
    session = LazySession(master=spark_master, conf=spark_conf, spark=spark)
    made = Instance(
        session=session,
        cooperative_threads=cooperative_threads,
        collections=collections,
        members=members,
    )
    if start_spark:
        session.starting()
    return made


def client(url: str, *, secret: str | None = None) -> Client:
    """A client of the cluster at `pyrite://host:port,host:port`, whose members share a secret. It
    has the interface of an instance."""
    from pyrite.cluster.client import client as connect

    return connect(url, secret=secret)


def _own_cluster(members: int, cooperative_threads: int | None) -> OwnCluster:
    from pyrite.cluster.own import OwnCluster  # ZeroMQ is loaded by whoever uses it

    return OwnCluster(members, cooperative_threads=cooperative_threads)


class Instance:
    """Made by `pyrite.instance()`."""

    def __init__(
        self,
        *,
        session: LazySession,
        cooperative_threads: int | None,
        collections: str,
        members: int | None = None,
    ) -> None:
        if cooperative_threads is not None and (
            isinstance(cooperative_threads, bool)
            or not isinstance(cooperative_threads, int)
            or cooperative_threads < 1
        ):
            raise PyriteError(
                "cooperative_threads must be a whole number above 0; got "
                f"{shorten(cooperative_threads)}"
            )
        if collections != "memory":
            raise PyriteError(f"collections must be 'memory'; got {shorten(collections)}")
        self._cluster = None if members is None else _own_cluster(members, cooperative_threads)
        self._service = ExecutionService(cooperative_threads)
        self._session = session
        self._collections: MemoryCollections | OwnCluster = self._cluster or MemoryCollections()
        self._running: dict[str, Execution] = {}
        self._lock = threading.Lock()
        self._closed = False

    def new_job(self, dag: DAG, config: JobConfig | None = None) -> Job:
        """A job that runs the DAG, each time `execute()` is called on it."""
        return Job(_checked_dag(dag), _checked_config(config), False, _submit=self.execute)

    def new_light_job(self, dag: DAG, config: None = None) -> Job:
        """A job that starts within a fraction of a millisecond, and takes no name: it can only be
        waited for or cancelled."""
        if config is not None:
            raise PyriteError(
                f"a light job takes no name and no other configuration, got {shorten(config)}; use "
                "new_job for that"
            )
        if self._cluster is not None:
            return self._cluster.client.new_light_job(_checked_dag(dag))
        return Job(_checked_dag(dag), JobConfig(), True, _submit=self.execute)

    def execute(self, job: Job) -> Execution:
        """Starts a job and returns at once with the handle of this execution. Raises InvalidDAG if
        its DAG is not valid."""
        if not isinstance(job, Job):
            raise PyriteError(
                f"an instance executes a job, as new_job makes it; got {shorten(job)}"
            )
        self._check_open()
        if self._cluster is not None and job.is_light:
            return self._cluster.client.execute(job)
        execution = Execution(job, run_callback=self._service.threads.run)
        run = RunContext(
            job_name=job.name,
            job_id=job.id,
            execution_id=execution.id,
            member_count=1,
            collections=self._collections,
        )

        def on_end(error: BaseException | None) -> None:
            self._running.pop(execution.id, None)
            execution.end(error)

        if job.is_light:
            plan = Plan.of(job.dag, member_count=1, default_parallelism=len(self._service.workers))
            light = JobRun(
                plan, run, service=self._service, on_end=on_end, on_running=execution.now_running
            )
            execution.wire(cancel=light.cancel, metrics=light.metrics)
            self._register(execution)
            light.begin()
        else:
            from pyrite.spark.execution import (
                SparkRun,
            )  # Arrow and what else Spark needs is loaded by whoever uses it

            job.dag.validate()
            normal = SparkRun(
                job.dag,
                run,
                session=self._session,
                config=job.config,
                on_end=on_end,
                on_running=execution.now_running,
            )
            execution.wire(
                cancel=normal.cancel,
                metrics=normal.metrics,
                progress=normal.progress,
                timings=normal.timings,
            )
            self._register(execution)
            normal.begin(self._service.threads.run)
        return execution

    def _check_open(self) -> None:
        if self._closed:
            raise PyriteError("this instance is closed; open another with pyrite.instance()")

    def _register(self, execution: Execution) -> None:
        """From here on `close` knows of the execution; so it must not have begun to wait for those
        it knew."""
        with self._lock:
            self._check_open()
            self._running[execution.id] = execution

    def processes(self) -> builtins.list[tuple[str, int]]:
        """The role and the number of each process that this instance has started."""
        return [] if self._cluster is None else self._cluster.processes()

    def light_jobs(self) -> builtins.list[Execution]:
        """The light jobs that are running now."""
        if self._cluster is not None:
            return self._cluster.executions()
        return [execution for execution in self._running.copy().values() if execution.job.is_light]

    def spark(self) -> SparkSession:
        """The Spark session that normal jobs run on, started if need be."""
        return self._session.get()

    def map(self, name: str) -> MemoryMap | RemoteMap:
        """The map of that name, made if it does not exist yet."""
        return self._collections.map(name)

    def list(self, name: str) -> MemoryList | RemoteList:
        """The list of that name, made if it does not exist yet."""
        return self._collections.list(name)

    def collections(self) -> builtins.list[tuple[str, str, builtins.list[Any]]]:
        """What the named collections hold: (`map` or `list`, name, items or pairs) for each that
        has anything."""
        return self._collections.contents()

    def close(self) -> None:
        """Cancels what is running, waits for it, and stops the threads."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        running = tuple(self._running.copy().values())
        for execution in running:
            execution.cancel()
        stuck = wait(running, timeout=CLOSING_SECONDS).not_done
        for each in stuck:
            logger.error(
                "%s has not stopped within %d s of the instance's closing: a call of it does not "
                "return",
                each,
                CLOSING_SECONDS,
            )
        self._service.close(wait=not stuck)
        if self._cluster is not None:
            self._cluster.close()
        self._session.stop()

    def __enter__(self) -> Instance:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<pyrite instance, {len(self._running)} running{', closed' if self._closed else ''}>"
        )


def _checked_dag(dag: Any) -> DAG:
    if not isinstance(dag, DAG):
        raise PyriteError(f"a job is made of a DAG; got {shorten(dag)}")
    return dag


def _checked_config(config: Any) -> JobConfig:
    if config is None:
        return JobConfig()
    if not isinstance(config, JobConfig):
        raise PyriteError(f"the second argument of new_job is a JobConfig; got {shorten(config)}")
    return config
