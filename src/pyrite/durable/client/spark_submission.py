"""Submits a job that a peer runs on Spark: the DAG travels as it is, and its sinks are prepared."""

from __future__ import annotations

from dataclasses import replace

from pyrite.context import Collections
from pyrite.dag import DAG
from pyrite.durable.client.submission import Submission
from pyrite.durable.parts.code import JobCode, SparkCode
from pyrite.durable.planning.tasks import PlannedJob, plan_spark
from pyrite.durable.queues.queues import Queues
from pyrite.engine.execution import MetaSuppliers, committing_sinks
from pyrite.engine.fusion import step_of
from pyrite.engine.member import LifeCycleFailed
from pyrite.engine.plan import plan_topology
from pyrite.errors import InvalidDAG
from pyrite.exchange.driving import SparkSettings
from pyrite.exchange.reach import check_reach
from pyrite.exchange.serializable import check_serializable
from pyrite.job import Job
from pyrite.processors.items import ReadItems, ReadOnce
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.spark import ReadSpark


class SparkSubmission(Submission):
    def __init__(
        self,
        job: Job,
        id: str,
        collections: Collections,
        queues: Queues,
        settings: SparkSettings | None,
    ) -> None:
        self._settings = settings or SparkSettings()
        super().__init__(job, id, collections, queues)

    def _plan(self, job: Job, collections: Collections) -> PlannedJob:
        job.dag.validate()
        for vertex in job.dag.vertices:
            step = step_of(vertex.supplier)
            if isinstance(step, ReadSpark):
                raise InvalidDAG(
                    f"vertex '{vertex.name}' reads a DataFrame of this process, but the peer that "
                    "runs a durable job has a Spark session of its own; write the DataFrame to "
                    "files, such as Parquet, and read them with read_files(), or use new_job"
                )
            if step is not None:
                check_reach(step, vertex.name, "process of a durable job")
            self._suppliers[vertex.name] = vertex.supplier
        check_serializable(job.dag, to="the peers of a durable job", stays=(ReadOnce,))
        return plan_spark(plan_topology(job.dag, member_count=1, default_parallelism=1))

    def _code(self) -> JobCode:
        sinks = committing_sinks(self._suppliers)
        self._meta_suppliers = MetaSuppliers(
            self._run, self._planned.topology, self._suppliers, sinks
        )
        try:
            self._meta_suppliers.prepare_sinks()
        except LifeCycleFailed as failed:
            raise failed.failed.to_job_failed(self._job.name) from failed.failed.error
        config = replace(self._job.config, modules=(), wheels=(), files=())
        return JobCode(
            planned=self._planned,
            steps={},
            suppliers=(),
            meta_suppliers=(),
            sinks=sinks,
            single_partitions={},
            job_name=self._job.name,
            job_id=self._job.id,
            execution_id=self._id,
            tries=self._job.config.tries,
            spark=SparkCode(_with_items(self._job.dag), config, self._settings),
        )


def _with_items(dag: DAG) -> DAG:
    """Reads the iterators of a DAG, which only this process can read."""
    return dag.with_suppliers(
        {
            vertex.name: StepSupplier(ReadItems(list(step.take(vertex.name))))
            for vertex in dag.vertices
            if isinstance(step := step_of(vertex.supplier), ReadOnce)
        }
    )
