"""The durable jobs of a folder or a deployment, as an instance sees them: it submits, lists and
cancels them, and waits for their end."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

from pyrite.context import Collections
from pyrite.dag import DAG
from pyrite.durable.client.desk import Desk
from pyrite.durable.client.figures import members_of, metrics_of
from pyrite.durable.client.overview import progress, waits_for
from pyrite.durable.client.spark_submission import SparkSubmission
from pyrite.durable.client.submission import Catalog, Submission
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import JobNode, JobStatus
from pyrite.durable.protocol.workflow import Workflow
from pyrite.durable.queues.queues import Queues
from pyrite.durable.store.store import Store
from pyrite.engine.travelling import unpack_failure
from pyrite.errors import JobCancelled, JobFailed, PyriteError
from pyrite.exchange.driving import SparkSettings
from pyrite.functions import shorten
from pyrite.job import Execution, Job, JobConfig

MOST_KEPT: Final = 100
KEEPING_SECONDS: Final = 2.0


class DurableJobs:
    def __init__(
        self,
        open_store: Callable[[], Store],
        open_queues: Callable[[], Queues],
        collections: Collections,
        *,
        run_callback: Callable[[Callable[[], None]], None],
    ) -> None:
        self._desk = Desk(open_store)
        self._open_queues = open_queues
        self._collections = collections
        self._run_callback = run_callback
        self._known: WeakValueDictionary[str, Execution] = WeakValueDictionary()
        self._last_metrics: dict[str, dict[str, Any]] = {}
        """Of jobs that had ended when this was closed, since the store cannot be asked then."""
        self._lock = threading.Lock()

    def execute(self, job: Job, spark: SparkSettings | None = None) -> Execution:
        """Submits the job. When this returns, the job will run, whatever dies. `spark` is what a
        peer starts a session with, for a job that runs on Spark."""
        execution = self._execution(job, None)
        queues = self._open_queues()
        try:
            submission = (
                SparkSubmission(job, execution.id, self._collections, queues, spark)
                if job.on_spark
                else Submission(job, execution.id, self._collections, queues)
            )
            # What this process leaves if it dies meanwhile is deleted by the coordinator.
            with self._desk.holding(paths.submitting(execution.id)):
                submission.send(self._desk.ask)
        finally:
            queues.close()
        execution.add_done_callback(partial(_tidy_up, submission))
        return self._follow(execution)

    def job(self, id: str) -> Execution:
        """The execution with this id."""
        if not isinstance(id, str) or not id:
            raise PyriteError(f"the id of a job is a string; got {shorten(id)}")
        with self._lock:
            known = self._known.get(id)
        if known is not None:
            return known
        catalog, node = self._desk.ask(
            lambda store: (store.get(paths.catalog(id)), store.get(paths.job(id)))
        )
        if catalog is None and node is None:
            raise PyriteError(f"there is no durable job {shorten(id)} here; jobs() lists them")
        return self._found(id, catalog)

    def jobs(self) -> list[Execution]:
        """All that are known here, the newest first."""
        nodes = self._desk.ask(lambda store: store.below("/catalog", "/job"))
        submitted: dict[str, tuple[float, str]] = {}
        for path, text in nodes.items():
            root, _, id = path.rpartition("/")
            if root == "/catalog":
                submitted[id] = (Catalog.read(text).submitted, text)
        newest = sorted(submitted, key=lambda id: submitted[id][0], reverse=True)
        return [self._found(id, submitted[id][1]) for id in newest]

    def has_open_jobs(self) -> bool:
        """Whether a job has been submitted that has not ended, or whose queues are still there."""
        nodes = self._desk.ask(lambda store: store.below("/plan", "/job", paths.TO_CLOSE))
        return any(
            path.startswith(("/plan/", f"{paths.TO_CLOSE}/"))
            or (path.startswith("/job/") and not JobNode.read(text).status.has_ended)
            for path, text in nodes.items()
        )

    def close(self) -> None:
        """Those who wait for a job are told that they wait in vain; the job goes on."""
        with self._lock:
            known = list(self._known.values())
        self._keep_metrics([each.id for each in known if each.done()])
        self._desk.close()
        for execution in known:
            if not execution.done():
                execution.set_exception(
                    PyriteError(
                        f"the instance that followed {execution.job.name} is closed; the job goes"
                        " on when its folder is opened again, or in its deployment, where"
                        f" job({execution.id!r}) finds it"
                    )
                )

    def _found(self, id: str, catalog: str | None) -> Execution:
        with self._lock:
            known = self._known.get(id)
        if known is not None:
            return known
        known_of = None if catalog is None else Catalog.read(catalog)
        name = None if known_of is None else known_of.name
        job = Job(DAG(), JobConfig(name=name), False, id, is_durable=True)
        execution = self._execution(job, id)
        if known_of is not None:
            execution.submitted = known_of.submitted
        return self._follow(execution)

    def _execution(self, job: Job, id: str | None) -> Execution:
        execution = Execution(
            job, run_callback=self._run_callback, needs_this_thread=lambda: False, id=id
        )
        execution.wire(
            cancel=partial(self._cancel, execution.id),
            metrics=partial(self._metrics, execution.id),
            progress=partial(self._progress, execution.id),
            waits_for=partial(self._waits_for, execution.id),
            members=partial(self._members, execution),
        )
        return execution

    def _follow(self, execution: Execution) -> Execution:
        with self._lock:
            known = self._known.setdefault(execution.id, execution)
        if known is execution:
            self._desk.watch(paths.job(execution.id), lambda data: self._tell(execution, data))
        return known

    def _tell(self, execution: Execution, data: str | None) -> bool:
        if data is None:
            return False
        node = JobNode.read(data)
        if not node.status.has_ended:
            execution.now_running()
            return False
        execution.end(outcome(node, execution.job.name), ended=node.ended or None)
        return True

    def _cancel(self, id: str) -> None:
        self._desk.ask(lambda store: store.create(paths.cancel(id)))

    def _metrics(self, id: str) -> dict[str, Any]:
        kept = self._last_metrics.get(id)
        return self._desk.ask(lambda store: metrics_of(store, id)) if kept is None else kept

    def _keep_metrics(self, ids: list[str]) -> None:
        """Whoever holds the execution of a job that has ended may ask for its metrics later."""
        ids = [id for id in ids[-MOST_KEPT:] if id not in self._last_metrics]
        if not ids:
            return
        try:
            self._last_metrics |= self._desk.ask(
                lambda store: {id: metrics_of(store, id) for id in ids}, seconds=KEEPING_SECONDS
            )
        except (PyriteError, OSError, TimeoutError):
            pass  # a store that does not answer holds up nobody who closes

    def _members(self, execution: Execution) -> list[dict[str, Any]]:
        if execution.done():
            return []
        return self._desk.ask(lambda store: members_of(store, execution.id))

    def _progress(self, id: str) -> list[tuple[str, int, int]]:
        """For each task: its name, how many of its parts are complete, and how many it has."""
        workflow, names = self._desk.ask(
            lambda store: (store.get(paths.workflow(id)), store.children(paths.tasks(id)))
        )
        return [] if workflow is None else progress(Workflow.read(workflow), id, names)

    def _waits_for(self, id: str) -> str | None:
        return self._desk.ask(lambda store: waits_for(store, id))


def _tidy_up(submission: Submission, ended: Future[None]) -> None:
    error = ended.exception()
    if isinstance(error, (JobFailed, JobCancelled)):
        submission.discard(error)


def outcome(node: JobNode, name: str) -> BaseException | None:
    """How a job that has ended ended."""
    if node.status is JobStatus.COMPLETE:
        return None
    if node.status is JobStatus.CANCELLED:
        return JobCancelled(f"{name} was cancelled")
    sentence, _, packed = node.reason.partition("\n")
    if packed:
        return unpack_failure(base64.b64decode(packed)).to_job_failed(name)
    return JobFailed(f"{name} failed: {sentence}")
