"""One execution of a DAG on Spark, as the driver sees it: it plans and serializes the DAG, runs it
as one Spark action, commits the results and closes everything."""

from __future__ import annotations

import logging
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pyrite.collections.redis import RedisCollections
from pyrite.dag import DAG, EdgeSettings
from pyrite.engine.execution import MetaSuppliers, committing_sinks
from pyrite.engine.failure import Failed
from pyrite.engine.fusion import step_of
from pyrite.engine.limits import too_many_bad_records
from pyrite.engine.member import LifeCycleFailed, RunContext, at
from pyrite.engine.metrics import added_up, with_times
from pyrite.engine.plan import EdgePlan, Topology, choose_single_partitions, plan_topology
from pyrite.errors import InvalidDAG, JobCancelled, PyriteError
from pyrite.exchange.deployment import Deployment
from pyrite.exchange.driving import HandOver, Uncommitted
from pyrite.exchange.reach import check_reach
from pyrite.exchange.sections import Section, plan_sections
from pyrite.exchange.serializable import check_serializable
from pyrite.job import JobConfig
from pyrite.processors.collections import ReadList, ReadMap
from pyrite.processors.columns.passing import PassBatches
from pyrite.processors.items import ReadItems, ReadOnce
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import ReadStep
from pyrite.processors.spark import ReadSpark, WriteSpark
from pyrite.processors.transforms import noop
from pyrite.spark.collections import JobCollections, OnDriver, Store
from pyrite.spark.failures import (
    SparkError,
    explained,
    in_short,
    is_from_spark,
    stage_number,
    text_of,
    was_stopped,
)
from pyrite.spark.frames import ROWS, arrow_schema_of, as_rows, frame_of_rows, schema_of
from pyrite.spark.job_frame import job_frame
from pyrite.spark.job_session import job_session
from pyrite.spark.live.hearing import Hearing
from pyrite.spark.live.telling import Where
from pyrite.spark.liveness import is_connect
from pyrite.spark.packets import COLLECTED, REPORT, driver_rows
from pyrite.spark.progress import page_of, progress_of, section_of_number, stages_of_group
from pyrite.spark.redis import InRedis
from pyrite.spark.session import LazySession, default_members
from pyrite.spark.tasks import SectionWork, TaskReport, failure_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("pyrite.spark")

CANCEL_SECONDS = 0.1


class SparkRun:
    """Runs a DAG once, on a thread of its own. `on_end` is called when the job has ended and
    everything is closed. With `hand_over` it commits nothing."""

    def __init__(
        self,
        dag: DAG,
        run: RunContext,
        *,
        session: LazySession,
        config: JobConfig,
        deployment: Deployment,
        on_end: Callable[[BaseException | None], None],
        on_running: Callable[[], None],
        hand_over: HandOver | None = None,
    ) -> None:
        self._dag = dag
        self._run = run
        self._session = session
        self._members = config.members
        self._partitions = config.partitions
        self._deployment = deployment
        self._on_end = on_end
        self._on_running = on_running
        self._metrics: dict[str, Any] = {}
        """What the tasks have reported, when all are done."""
        self._hearing = Hearing()
        self._timings: dict[str, float] = {}
        self._spark: SparkSession | None = None
        self._ran_on: weakref.ref[SparkSession] | None = None
        self._sections: tuple[Section, ...] = ()
        self._reports: list[TaskReport] = []
        self._lock = threading.Lock()
        self._cancelled: Future[None] = Future()
        self._hand_over = hand_over
        self._collections = _collections_of(run) if hand_over is None else OnDriver(run.collections)
        check_serializable(dag)

    def begin(self, start: Callable[[Callable[[], None]], None]) -> None:
        start(self._execute)

    def cancel(self) -> None:
        with self._lock:
            self._run.halt.cancel()
            if not self._cancelled.done():
                self._cancelled.set_result(None)
            on_spark = self._spark is not None
        if on_spark:
            threading.Thread(target=self._insist, name="pyrite-spark-cancel", daemon=True).start()

    def _insist(self) -> None:
        """Repeats the cancel until the job has ended: Spark cancels only jobs that have begun, and
        one action may start several."""
        while (spark := self._spark) is not None:
            try:
                if is_connect(spark):
                    spark.interruptTag(self._tag)
                else:
                    spark.sparkContext.cancelJobsWithTag(self._tag)
            except Exception:
                logger.debug("cancelling %s on Spark raised", self._run.job_name, exc_info=True)
            time.sleep(CANCEL_SECONDS)

    def metrics(self) -> dict[str, Any]:
        """What the tasks have told so far; at the end, what they have reported."""
        return self._metrics or self._hearing.metrics([vertex.name for vertex in self._dag])

    def members(self) -> list[dict[str, Any]]:
        """The Python workers that run tasks now."""
        return self._hearing.members()

    def page(self) -> str | None:
        """The address of Spark's page of the job."""
        spark = None if self._ran_on is None else self._ran_on()
        return None if spark is None else page_of(spark, self._run.execution_id)

    def timings(self) -> dict[str, float]:
        """The seconds spent on waiting for the session, running the stages, and committing the
        results."""
        return dict(self._timings)

    def progress(self) -> list[tuple[str, int, int]]:
        """For each stage that has begun: its vertices, the number of tasks that are done, and the
        number of all tasks."""
        spark = self._spark
        if spark is None:
            return []
        return progress_of(self._sections, stages_of_group(spark, self._run.execution_id))

    @property
    def _tag(self) -> str:
        return f"pyrite-{self._run.execution_id}"

    def _execute(self) -> None:
        halt = self._run.halt
        if halt.is_set:
            self._on_end(halt.error(self._run.job_name))
            return
        meta_suppliers: MetaSuppliers | None = None
        spark: SparkSession | None = None
        try:
            with self._timed("session"):
                spark = self._wait_for_session()
            self._collections.begin()
            self._run.member_count = self._members or default_members(spark)
            suppliers = {vertex.name: vertex.supplier for vertex in self._dag.vertices}
            topology = with_frames(
                plan_topology(
                    self._dag,
                    member_count=self._run.member_count,
                    default_parallelism=1,
                    partition_count=self._partitions,
                ),
                suppliers,
            )
            self._sections = plan_sections(topology, suppliers)
            sinks = committing_sinks(suppliers)
            meta_suppliers = MetaSuppliers(self._run, topology, suppliers, sinks)
            if self._hand_over is None:
                meta_suppliers.begin_sinks()
            by_member = meta_suppliers.suppliers_by_member()
            if not halt.is_set:
                self._on_running()
                self._run_on(
                    spark,
                    topology,
                    self._works(
                        spark,
                        topology,
                        suppliers,
                        by_member,
                        self._hearing.open(spark, self._run.member_count),
                    ),
                    meta_suppliers,
                )
        except LifeCycleFailed as failed:
            halt.fail(in_short(failed.failed))
        except BaseException as raised:
            if not halt.cancelled:
                halt.fail(self._explained(raised, spark))
        finally:
            self._hearing.close()
            if self._reports:  # the last that tasks have told may have come only now
                with _ignoring_errors("adding up the metrics"):
                    self._add_up(self._reports)
                self._reports = []
            error = halt.error(self._run.job_name)
            if meta_suppliers is not None and (error is not None or self._hand_over is None):
                meta_suppliers.close(error)
            self._collections.end()
            self._on_end(error)

    def _explained(self, raised: BaseException, spark: SparkSession | None) -> Failed:
        """The failure that an error on the driver stands for."""
        report = text_of(raised)
        failure = failure_in(report)
        if failure is not None:
            return failure
        if spark is None or isinstance(raised, PyriteError):
            return Failed(raised)
        how = self._session.how_it_ended() or ("was stopped" if was_stopped(report) else None)
        if how is not None:
            return Failed(
                SparkError(self._session.after_it(how, when=" while the job ran"), report)
            )
        if not is_from_spark(raised):
            return Failed(raised)
        section = self._section_of(stage_number(report), spark)
        name = f"stage '{section.label}'" if section is not None else None
        only_vertex = (
            section.vertices[0].name if section is not None and len(section.vertices) == 1 else None
        )
        return Failed(SparkError(explained(report, name), report), vertex=only_vertex)

    def _section_of(self, number: int | None, spark: SparkSession) -> Section | None:
        """The section of the stage with that number, unless DataFrames that the job reads have
        stages of their own."""
        if number is None or any(_is_read_spark(v.supplier) for v in self._dag.vertices):
            return None
        known = stages_of_group(spark, self._run.execution_id)
        return section_of_number(self._sections, known, number)

    def _wait_for_session(self) -> SparkSession:
        """Waits for the session, which may take long to start, or for a cancel of the job."""
        session = self._session.starting()
        either: list[Future[Any]] = [session, self._cancelled]
        wait(either, return_when=FIRST_COMPLETED)
        if self._run.halt.is_set:
            raise JobCancelled(self._run.job_name)
        return session.result()

    def _works(
        self,
        spark: SparkSession,
        topology: Topology,
        suppliers: Mapping[str, Any],
        by_member: Sequence[Mapping[str, Any]],
        tells: Where | None,
    ) -> list[SectionWork]:
        steps: dict[str, Any] = {}
        parallelism = {vertex.name: vertex.local_parallelism for vertex in topology.vertices}
        for number, (name, supplier) in enumerate(suppliers.items()):
            step = step_of(supplier)
            if isinstance(step, WriteSpark):
                with at(name):
                    steps[name] = as_rows(number, arrow_schema_of(step.schema, spark))
            elif step is not None:
                with at(name):
                    readers = self._run.member_count * parallelism[name]
                    steps[name] = for_tasks(name, supplier, self._collections, readers=readers)
        return section_works(
            self._sections,
            topology,
            steps,
            by_member,
            choose_single_partitions(topology, random.Random()),
            self._run,
            self._collections.store,
            start="" if self._hand_over is None else self._hand_over.start,
            tells=tells,
        )

    def _run_on(
        self,
        spark: SparkSession,
        topology: Topology,
        works: Sequence[SectionWork],
        meta_suppliers: MetaSuppliers,
    ) -> None:
        """Runs the sections, then makes visible what they wrote. Collections are changed last, and
        all at once: a failed job changes no collection."""
        suppliers = {vertex.name: vertex.supplier for vertex in self._dag.vertices}
        with self._timed("stages"):
            uses_frames = any(
                isinstance(step_of(each), (ReadSpark, WriteSpark)) for each in suppliers.values()
            )
            session = spark if uses_frames else job_session(spark)
            frame = job_frame(
                session, works, suppliers, self._deployment, bypass=session is not spark
            )
        written = [
            (n, v.name, v.supplier.step)
            for n, v in enumerate(self._dag.vertices)
            if _is_write_spark(v.supplier)
        ]
        if written:
            frame = frame.persist()  # saving the rows must not run the sections again
        try:
            with self._tagged(spark), self._timed("stages"):
                table = (frame.where(f"edge < {ROWS}") if written else frame).toArrow()
            reports = self._read_reports(table)
            excess = too_many_bad_records(topology, self._metrics)
            if excess is not None:
                self._run.halt.fail(excess)
            if not self._run.halt.seal():
                return
            collected = [each for _, each in driver_rows(table, (COLLECTED,))]
            if self._hand_over is not None:
                self._hand_over.take(Uncommitted(reports, collected, meta_suppliers.asked))
                return
            with self._timed("commit"), meta_suppliers.committed(reports):
                for number, name, step in written:
                    with at(name):
                        step.save(frame_of_rows(frame, number, step.schema))
                self._collections.commit(collected)
        finally:
            if written:
                with _ignoring_errors("giving memory back"):
                    frame.unpersist()

    def _read_reports(self, table: Any) -> dict[str, list[Any]]:
        """Takes the metrics from the reports of the tasks, and returns the reports of the sinks'
        writers."""
        reports: dict[str, list[Any]] = {}
        for _, message in driver_rows(table, (REPORT,)):
            self._reports.append(replace(message, reports={}))
            for vertex, said in message.reports.items():
                reports.setdefault(vertex, []).extend(said)
        self._add_up(self._reports)
        return reports

    def _add_up(self, reports: Sequence[TaskReport]) -> None:
        metrics = [self._with_times(report) for report in reports]
        self._metrics = added_up(metrics, [vertex.name for vertex in self._dag])

    def _with_times(self, report: TaskReport) -> Mapping[str, Any]:
        """The metrics of a task. Its report has no times if it must be the same in each attempt."""
        return with_times(report.metrics, self._hearing.of_task(report.section, report.member))

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        started = perf_counter()
        try:
            yield
        finally:
            self._timings[what] = self._timings.get(what, 0.0) + perf_counter() - started

    @contextmanager
    def _tagged(self, spark: SparkSession) -> Iterator[None]:
        """Tags the Spark jobs of this thread, so that they can be cancelled, followed, and found in
        Spark's web interface."""
        with self._lock:
            self._spark = spark
            self._ran_on = weakref.ref(spark)
            if self._run.halt.is_set:
                raise JobCancelled(self._run.job_name)
        if is_connect(spark):
            spark.addTag(self._tag)
        else:
            spark.sparkContext.addJobTag(self._tag)
            description = (
                f"{self._run.job_name}: {' | '.join(section.label for section in self._sections)}"
            )
            spark.sparkContext.setJobGroup(self._run.execution_id, description)
        try:
            yield
        finally:
            with self._lock:
                self._spark = None
            with _ignoring_errors("removing the tag of a job"):
                self._untag(spark)

    def _untag(self, spark: SparkSession) -> None:
        if is_connect(spark):
            spark.removeTag(self._tag)
            return
        spark.sparkContext.removeJobTag(self._tag)
        for name in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            spark.sparkContext.setLocalProperty(name, None)  # type: ignore[arg-type]


@contextmanager
def _ignoring_errors(what: str) -> Iterator[None]:
    """For the clean-up after a job: an error there, for example because the session has ended, must
    not replace the outcome of the job."""
    try:
        yield
    except Exception:
        logger.debug("%s raised", what, exc_info=True)


def section_works(
    sections: Sequence[Section],
    topology: Topology,
    steps: Mapping[str, Any],
    by_member: Sequence[Mapping[str, Any]],
    single_partitions: Mapping[int, int],
    run: RunContext,
    store: Store | None = None,
    start: str = "",
    tells: Where | None = None,
) -> list[SectionWork]:
    """What the tasks of each section need to know."""
    ranks = {edge: rank for section in sections for edge, rank in section.turns.items()}
    works = []
    for section in sections:
        names = {vertex.name for vertex in section.vertices}
        works.append(
            SectionWork(
                section=section,
                topology=topology,
                ranks=ranks,
                steps={name: step for name, step in steps.items() if name in names},
                suppliers=[
                    {name: s for name, s in member.items() if name in names} for member in by_member
                ],
                single_partitions=single_partitions,
                job_name=run.job_name,
                job_id=run.job_id,
                execution_id=run.execution_id,
                store=store,
                start=start,
                tells=tells,
            )
        )
    return works


def _collections_of(run: RunContext) -> JobCollections:
    if isinstance(run.collections, RedisCollections):
        return InRedis(run.collections.server.url, run.execution_id)
    return OnDriver(run.collections)


def for_tasks(
    vertex: str, supplier: StepSupplier, collections: JobCollections | None, *, readers: int
) -> StepSupplier:
    """The supplier of a step as it is sent to the tasks. A source in the driver's memory is
    replaced by its items, and a pattern of files by the list of files that match now, because each
    task might find others. In all tasks together, so many processors read from a source."""
    step = supplier.step
    if isinstance(step, ReadSpark):  # the rows come as packets
        return StepSupplier(PassBatches(schema_of(step.df))) if step.batches else noop()
    check_reach(step, vertex, "Spark worker")
    if isinstance(step, ReadStep) and step.looks:
        return StepSupplier(step.found(vertex, readers))
    if isinstance(step, ReadOnce):
        return StepSupplier(ReadItems(list(step.take(vertex))))
    if isinstance(step, (ReadMap, ReadList)):
        if collections is None:
            raise InvalidDAG(
                f"vertex '{vertex}' reads a named collection of an instance, but a DataFrame "
                "belongs to no instance; use read_items()"
            )
        return collections.source(step)
    return supplier


def with_frames(topology: Topology, suppliers: Mapping[str, Any]) -> Topology:
    """The topology with an inbound edge added to each vertex that reads a DataFrame; the packets of
    its rows arrive on that edge."""
    number = 1 + max(
        (edge.id for vertex in topology.vertices for edge in vertex.outbound), default=-1
    )
    vertices = []
    for vertex in topology.vertices:
        if isinstance(step_of(suppliers[vertex.name]), ReadSpark):
            edge = EdgePlan(number, "", 0, vertex.name, 0, EdgeSettings(), False)
            vertices.append(replace(vertex, inbound=(edge,)))
            number += 1
        else:
            vertices.append(vertex)
    return replace(topology, vertices=tuple(vertices))


def _is_read_spark(supplier: Any) -> bool:
    return isinstance(step_of(supplier), ReadSpark)


def _is_write_spark(supplier: Any) -> bool:
    return isinstance(step_of(supplier), WriteSpark)
