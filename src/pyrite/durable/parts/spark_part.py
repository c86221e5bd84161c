"""The part of a durable job that runs on Spark: the peer drives the whole DAG, and tells the
completion what the tasks of Spark have left to commit.

Nothing of a start is visible before the commit of the part. If the peer dies, another one starts
the job again, and what the tasks of the earlier start have written is never committed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NoReturn, TypeAlias, TypeVar

from pyrite.columns.packing.item_pickling import dumps
from pyrite.context import Collections
from pyrite.durable.parts.code import JobCode, SparkCode
from pyrite.durable.parts.committing import commit, new_attempt, take_part_over
from pyrite.durable.parts.egress import Egress
from pyrite.durable.parts.running import OUTPUT_BYTES, PartFailed
from pyrite.durable.parts.tally import Tally
from pyrite.durable.parts.told import Added, Asked, Measured, Reported
from pyrite.durable.protocol.exactness.commits import Commit
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.queues.queues import Queues, QueuesError, QueuesGone
from pyrite.engine.failure import Failed
from pyrite.engine.member import close_quietly
from pyrite.errors import InvalidDAG, PyriteError
from pyrite.exchange.deployment import Deployment
from pyrite.exchange.driving import Driver, HandOver, NormalRun, SparkSettings, Uncommitted
from pyrite.functions import message_of
from pyrite.job import Job
from pyrite.suppliers import ProcessorMetaSupplier

logger = logging.getLogger("pyrite.durable")

T = TypeVar("T")
LOOK_SECONDS: Final = 0.1
RETRY_SECONDS: Final = 0.5
CANCEL_SECONDS: Final = 10.0
"""How long Spark may take to cancel a job, before its session is stopped."""

NewDriver: TypeAlias = Callable[[SparkSettings], Driver]


def no_driver(settings: SparkSettings) -> NoReturn:
    raise PyriteError(
        "this peer cannot start jobs on Spark; run peers with pyrite.instance(durable=...) or "
        "`pyrite peers`"
    )


class SparkPart:
    """`check` is called often; it raises PartStopped when the part was taken away. `new_driver`
    starts a Spark session, which ends with the part: an idle session would hold the cores of a
    cluster."""

    def __init__(
        self,
        code: JobCode,
        part: Part,
        queues: Queues,
        collections: Collections,
        *,
        deployment: Deployment,
        new_driver: NewDriver,
        offer: int,
        check: Callable[[], None],
        tally: Tally | None = None,
    ) -> None:
        assert code.spark is not None
        self._code = code
        self._spark: SparkCode = code.spark
        self._part = part
        self._queues = queues
        self._collections = collections
        self._deployment = deployment
        self._new_driver = new_driver
        self._offer = offer
        self._check = check
        self._tally = tally or Tally(part, offer)
        self._stored = take_part_over(queues, part, offer)

    def run(self) -> None:
        """Returns when the part has nothing left to do but to seal. A run that fails because of
        Spark, not in a vertex, is tried again. Raises PartStopped or PartFailed."""
        tries = 0
        while not self._stored.record.is_over:
            try:
                self._run_once()
            except PartFailed as raised:
                tries += 1
                if tries >= self._code.tries or not _may_be_repeated(raised.failed):
                    raise
                logger.warning(
                    "%s is started on Spark again: %s",
                    self._code.job_name,
                    message_of(raised.failed.error),
                )

    def _run_once(self) -> None:
        job = Job(self._spark.dag, self._spark.config, False, self._code.job_id)
        start = new_attempt()
        left: list[Uncommitted] = []
        errors: list[BaseException | None] = []
        has_ended = threading.Event()

        def on_end(error: BaseException | None) -> None:
            errors.append(error)
            has_ended.set()

        try:
            driver = self._new_driver(self._spark.settings)
        except PyriteError as error:
            raise PartFailed(Failed(error)) from error
        try:
            run = driver.new_run(
                job,
                self._code.execution_id,
                deployment=self._deployment,
                collections=self._collections,
                on_end=on_end,
                on_running=_nothing,
                hand_over=HandOver(start, left.append),
            )
            run.begin(_on_a_thread)
            self._tally.look = run.metrics
            self._wait(run, has_ended)
            if errors[0] is not None:
                raise PartFailed(Failed.of(errors[0])) from errors[0]
            self._tally.look = None  # from here on, what is committed counts
            self._commit(start, left[0], run)
        except BaseException as error:
            for each in left:
                for vertex, meta_supplier in each.meta_suppliers:
                    close_quietly(vertex, meta_supplier, error)
            raise
        finally:
            self._tally.look = None
            driver.close()

    def _wait(self, run: NormalRun, has_ended: threading.Event) -> None:
        try:
            while not has_ended.wait(LOOK_SECONDS):
                self._check()
        except BaseException:
            run.cancel()
            has_ended.wait(CANCEL_SECONDS)
            raise

    def _commit(self, start: str, left: Uncommitted, run: NormalRun) -> None:
        task = self._code.planned.by_name[self._part.task]
        egress = Egress(self._part.job, self._code.planned, task, self._queues.most_bytes)
        for vertex, reports in left.reports.items():
            for report in reports:
                egress.tell(Reported(vertex, [report]))
        for vertex, meta_supplier in left.meta_suppliers:
            _check_can_be_told(vertex, meta_supplier)
            egress.tell(Asked(vertex, meta_supplier))
        metrics = run.metrics()
        for vertex, of_vertex in metrics.items():
            egress.tell(Measured(0, {vertex: of_vertex}))
        for each in left.collected:
            egress.tell(Added(each))
            _packing(egress.settle)
            if egress.size >= OUTPUT_BYTES:
                self._queues.stage(self._part, start, _packing(egress.take))
        record = replace(self._stored.record, epoch=self._offer, attempt=start, is_over=True)
        asked, outgoing = Commit(self._stored.sequence, record), _packing(egress.take)
        while True:
            try:
                self._stored = commit(self._queues, self._part, asked, outgoing, b"")
                self._tally.commits(metrics)
                return
            except QueuesGone:
                raise
            except QueuesError as error:  # what Spark has done may have taken hours
                logger.warning("%s waits for the queues: %s", self._code.job_name, error)
                time.sleep(RETRY_SECONDS)
                self._check()


def _packing(act: Callable[[], T]) -> T:
    """What `act` makes; something that is too large for a message is too large in every start."""
    try:
        return act()
    except QueuesError as error:
        raise PartFailed(Failed(error)) from error


def _check_can_be_told(vertex: str, meta_supplier: ProcessorMetaSupplier) -> None:
    try:
        dumps(meta_supplier, meta_supplier)
    except Exception as error:
        raised = PyriteError(
            f"the meta-supplier of vertex '{vertex}' cannot be pickled after get(): "
            f"{message_of(error)}. Another process may have to call its commit(), so it must not "
            "hold connections or locks; leave them out in __getstate__"
        )
        raise PartFailed(Failed(raised, vertex=vertex)) from error


def _may_be_repeated(failed: Failed) -> bool:
    return failed.vertex is None and not isinstance(failed.error, (InvalidDAG, QueuesError))


def _on_a_thread(act: Callable[[], None]) -> None:
    threading.Thread(target=act, name="pyrite-durable-spark", daemon=True).start()


def _nothing() -> None:
    pass
