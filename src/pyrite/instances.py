"""The instance: it executes jobs and holds named maps and lists."""

from __future__ import annotations

import builtins
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from typing import TYPE_CHECKING, Any, Literal

from pyrite.closing import Closing
from pyrite.collections import MemoryCollections, NamedList, NamedMap, redis_at
from pyrite.dag import DAG, MakesDAG
from pyrite.engine.execution import JobRun, Plan
from pyrite.engine.member import RunContext
from pyrite.engine.service import ExecutionService
from pyrite.errors import PyriteError
from pyrite.forks import repair_after_fork
from pyrite.functions import shorten
from pyrite.job import Execution, Job, JobConfig, checked_job, durable_job, light_job, normal_job
from pyrite.processors.services.nesting import is_on_event_loop
from pyrite.spark.driver import SparkDriver
from pyrite.spark.session import LazySession
from pyrite.telemetry.environment import from_environment
from pyrite.watching.observers import begun
from pyrite.watching.recorders import recording_from_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyrite.cluster.client import Client
    from pyrite.cluster.hosts.own import OwnCluster
    from pyrite.collections.redis import RedisCollections
    from pyrite.durable.collections.collections import FolderCollections
    from pyrite.durable.hosts.durable import Durable
    from pyrite.ui.opening import Page

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
    collections: str = "memory",
    durable: str | os.PathLike[str] | None = None,
    peers: int | None = None,
    ui: bool | str = False,
) -> Instance:
    """Opens an instance in this process. Use it as a context manager, or call its `close()`.

    Normal jobs run on Spark. Pass an existing session as `spark`; or the instance starts one with
    the first normal job, or at once and in the background if `start_spark` is true. It starts on
    `spark_master` (the URL of a master, or `sc://` for Spark Connect; default: this machine) with
    the settings in `spark_conf`.

    `cooperative_threads` is the number of threads that run light jobs: by default 1, or the number
    of CPUs on a free-threaded Python. It is also the default `local_parallelism` of light jobs.

    With `members`, light jobs run on that many processes of this machine, which are started with
    the first light job. Named maps and lists are then in the memory of these processes.

    `collections` says where else named maps and lists are: in a Redis or Valkey, at a URL such as
    `redis://host:6379/0` (extra `redis`). They outlive the instance, and all who use the same
    database share them.

    `durable` is where durable jobs are kept: in a folder of this machine, or in a deployment at
    `zk://host:2181/name?nats=nats://host:4222` (extra `durable`). With a folder, the instance
    starts a coordinator and `peers` peers (by default one for each CPU, but at least 2) with the
    first durable job, or at once if the folder has jobs that have not ended. Named maps and lists
    are then in the folder, too.

    With `ui`, the instance serves a page that shows its jobs (extra `ui`), at a free port of this
    machine or at `ui="host:port"`, and prints where. The runs are recorded, so that `pyrite ui`
    shows them later. On a host that other machines can reach, the address has a token.
    """
    session = LazySession(master=spark_master, conf=spark_conf, spark=spark)
    made = Instance(
        session=session,
        cooperative_threads=cooperative_threads,
        collections=collections,
        members=members,
        durable=durable,
        peers=peers,
    )
    if ui is not False:
        try:
            made.open_page(ui)
        except BaseException:
            made.close()
            raise
    if start_spark:
        session.starting()
    return made


def client(url: str, *, secret: str | None = None) -> Client:
    """A client of the cluster at `pyrite://host:port,host:port`, whose members share a secret. It
    has the interface of an instance."""
    from pyrite.cluster.client import client as connect

    return connect(url, secret=secret)


def _own_cluster(members: int, cooperative_threads: int | None, collections: str) -> OwnCluster:
    from pyrite.cluster.hosts.own import OwnCluster  # ZeroMQ is loaded by whoever uses it

    return OwnCluster(members, cooperative_threads=cooperative_threads, collections=collections)


class Instance(Closing):
    """Made by `pyrite.instance()`."""

    def __init__(
        self,
        *,
        session: LazySession,
        cooperative_threads: int | None,
        collections: str,
        members: int | None = None,
        durable: str | os.PathLike[str] | None = None,
        peers: int | None = None,
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
        self._redis = redis_at(collections)
        self._cluster = (
            None if members is None else _own_cluster(members, cooperative_threads, collections)
        )
        self._cooperative_threads = cooperative_threads
        self._service = ExecutionService(cooperative_threads)
        self._driver = SparkDriver(session)
        self._durable = _durable(durable, peers, self._redis, members, self._service.threads.run)
        self._stored: RedisCollections | FolderCollections | None = self._redis or (
            None if self._durable is None else self._durable.collections
        )
        self._collections: MemoryCollections | OwnCluster | RedisCollections | FolderCollections = (
            self._stored or self._cluster or MemoryCollections()
        )
        self._running: dict[str, Execution] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._has_closed = threading.Event()
        self._recording = recording_from_environment()
        if self._durable is not None and self._recording is not None:
            self._recording.remember("durable", self._durable.known_as)
        self._page: Page | None = None
        self._telemetry = from_environment()
        repair_after_fork(self)

    def new_job(self, dag: DAG | MakesDAG, config: JobConfig | None = None) -> Job:
        """A job that runs the DAG on Spark. It can be executed any number of times."""
        return normal_job(dag, config, self.execute)

    def new_light_job(self, dag: DAG | MakesDAG, config: None = None) -> Job:
        """A job that runs the DAG in this process and starts within a fraction of a millisecond. It
        has no name and no configuration."""
        job = light_job(dag, config, self.execute)
        return job if self._cluster is None else self._cluster.client.new_light_job(job.dag)

    def new_durable_job(
        self,
        dag: DAG | MakesDAG,
        config: JobConfig | None = None,
        *,
        on: Literal["peers", "spark"] = "peers",
    ) -> Job:
        """A job that runs the DAG on virtual peers, linked by durable queues: once it is executed,
        it ends with the right result whatever dies on the way. When `execute()` has returned, the
        job is stored. Named maps and lists and the files of write_files change once, when the job
        completes; the side effects of your functions may be repeated.

        With `on="spark"` one peer runs the whole DAG on Spark, as `new_job` does. If that peer
        dies, another one starts the Spark job again. Additions to named maps and lists, and the
        files of write_files, become visible once, after Spark has finished. The peer starts a
        session of its own with the `spark_master` and `spark_conf` of this instance, which are
        stored with the job, and stops it when the job has ended. read_spark and write_spark cannot
        be used. What a job reads, also from named maps and lists, it reads when it is started.
        """
        self._durably()
        return durable_job(dag, config, self.execute, on=on)

    def jobs(self) -> builtins.list[Execution]:
        """The executions of durable jobs, the newest first, of all who use the same folder or
        deployment. The last 1,000 that have ended are among them."""
        return self._durably().jobs()

    def job(self, id: str) -> Execution:
        """The execution of the durable job with this id, whoever has submitted it: to wait for it,
        to look at it, or to cancel it. Its DAG is not known here."""
        return self._durably().job(id)

    def _durably(self) -> Durable:
        self._check_open()
        if self._durable is None:
            raise PyriteError(
                "this instance has no place for durable jobs; open it with "
                "pyrite.instance(durable='folder/')"
            )
        return self._durable

    def execute(self, job: Job) -> Execution:
        """Starts a job and returns the handle of this execution at once. Raises InvalidDAG if the
        DAG is not valid."""
        checked_job(job, "an instance")
        self._check_open()
        if self._cluster is not None and job.is_light:
            return self._cluster.client.execute(job)
        return begun(self._execute(job))

    def _execute(self, job: Job) -> Execution:
        if job.is_durable:
            settings = self._driver.session.settings() if job.on_spark else None
            return self._durably().execute(job, settings)
        service = self._service
        execution = Execution(
            job,
            run_callback=service.threads.run,
            needs_this_thread=service.is_worker_thread if job.is_light else _needs_no_worker,
            is_here=job.is_light,
        )

        def on_end(error: BaseException | None) -> None:
            self._running.pop(execution.id, None)
            execution.end(error)

        if job.is_light:
            run = RunContext(
                job_name=job.name,
                job_id=job.id,
                execution_id=execution.id,
                member_count=1,
                collections=self._collections,
                wake=service.wake,
            )
            plan = Plan.of(job.dag, member_count=1, default_parallelism=len(service.workers))
            light = JobRun(
                plan, run, service=service, on_end=on_end, on_running=execution.now_running
            )
            if self._stored is not None:
                own = self._stored.for_execution()
                run.collections, light.flush = own, own.flush
            execution.wire(cancel=light.cancel, metrics=light.metrics, members=light.members)
            self._register(execution)
            light.begin()
        else:
            normal = self._driver.new_run(
                job,
                execution.id,
                collections=self._collections,
                on_end=on_end,
                on_running=execution.now_running,
            )
            execution.wire(
                cancel=normal.cancel,
                metrics=normal.metrics,
                progress=normal.progress,
                timings=normal.timings,
                members=normal.members,
                page=normal.page,
            )
            self._register(execution)
            normal.begin(service.threads.run)
        return execution

    def _check_open(self) -> None:
        if self._closed:
            raise PyriteError("this instance is closed; open another with pyrite.instance()")

    def _register(self, execution: Execution) -> None:
        """Adds the execution to those that `close` cancels and waits for, unless `close` has
        begun."""
        with self._lock:
            self._check_open()
            self._running[execution.id] = execution

    def processes(self) -> builtins.list[tuple[str, int]]:
        """The role and the number of each process that this instance has started."""
        members = [] if self._cluster is None else self._cluster.processes()
        return members + ([] if self._durable is None else self._durable.processes())

    def light_jobs(self) -> builtins.list[Execution]:
        """The executions of light jobs that are running now."""
        if self._cluster is not None:
            return self._cluster.light_jobs()
        return [execution for execution in self._running.copy().values() if execution.job.is_light]

    def open_page(self, ui: bool | str = True) -> str:
        """Serves a page that shows the jobs of this process, until the instance is closed. Returns
        its address, and prints it. As `pyrite.instance(ui=...)` does."""
        self._check_open()
        if self._page is None:
            from pyrite.ui.opening import page_at  # the server is loaded by whoever uses it

            self._page = page_at(ui)
            if self._durable is not None:
                self._page.remember("durable", self._durable.known_as)
            print(f"watch the jobs at {self._page.url}", file=sys.stderr, flush=True)
        return self._page.url

    @property
    def ui_url(self) -> str | None:
        """The address of the page; None if there is none."""
        return None if self._page is None else self._page.url

    def spark(self) -> SparkSession:
        """The Spark session that normal jobs run on. Starts it if necessary."""
        return self._driver.session.get()

    def map(self, name: str) -> NamedMap:
        """The map of that name; a new one if it does not exist yet."""
        return self._collections.map(name)

    def list(self, name: str) -> NamedList:
        """The list of that name; a new one if it does not exist yet."""
        return self._collections.list(name)

    def collections(self) -> builtins.list[tuple[str, str, builtins.list[Any]]]:
        """The contents of all collections that are not empty: (`map` or `list`, name, pairs or
        items) for each."""
        return self._collections.contents()

    def close(self) -> None:
        """Cancels what is running, waits for it, and stops the threads, and Spark if the instance
        started it.

        In a function or a callback of a job of this instance, and in an async function while jobs
        run, it cancels and returns at once, since it cannot wait for its own caller; the rest
        follows in the background.
        """
        on_own_thread = self._service.is_own_thread() or (
            bool(self._running) and is_on_event_loop()
        )
        with self._lock:
            was_closed, self._closed = self._closed, True
        if was_closed:
            if not on_own_thread:
                self._has_closed.wait()
            return
        running = tuple(self._running.copy().values())
        for execution in running:
            execution.cancel()
        if on_own_thread:
            threading.Thread(target=self._end, args=(running,), name="pyrite-close").start()
        else:
            self._end(running)

    def after_fork(self) -> None:
        """In a child process: its own threads start with its first job. The jobs that were running,
        and Spark, are the parent's."""
        self._lock = threading.Lock()
        self._running = {}
        self._service = ExecutionService(self._cooperative_threads)
        self._has_closed = threading.Event()
        if self._closed:
            self._has_closed.set()

    def _end(self, running: Sequence[Execution]) -> None:
        try:
            self._wait_and_stop(running)
        finally:
            self._telemetry.close()
            for each in (self._page, self._recording):
                if each is not None:
                    each.close()
            self._has_closed.set()

    def _wait_and_stop(self, running: Sequence[Execution]) -> None:
        stuck = wait(running, timeout=CLOSING_SECONDS).not_done
        for each in stuck:
            logger.error(
                "%s has not stopped within %d s after close(): a function of it does not return",
                each,
                CLOSING_SECONDS,
            )
        self._service.close(wait=not stuck)
        if self._cluster is not None:
            self._cluster.close()
        if self._durable is not None:
            self._durable.close()
        if self._stored is not None:
            self._stored.close()
        self._driver.close()

    def __repr__(self) -> str:
        return (
            f"<pyrite instance, {len(self._running)} running{', closed' if self._closed else ''}>"
        )


def _durable(
    place: str | os.PathLike[str] | None,
    peers: int | None,
    redis: RedisCollections | None,
    members: int | None,
    run_callback: Callable[[Callable[[], None]], None],
) -> Durable | None:
    if place is None:
        if peers is not None:
            raise PyriteError("peers= is for durable jobs; say where these are kept with durable=")
        return None
    if members is not None:
        raise PyriteError(
            "an instance runs light jobs on members, or has a place for durable jobs; open two "
            "instances to have both"
        )
    from pyrite.durable.hosts.durable import Durable

    return Durable(place, peers=peers, collections=redis, run_callback=run_callback)


def _needs_no_worker() -> bool:
    """A job on Spark goes on whatever the cooperative threads wait for."""
    return False
