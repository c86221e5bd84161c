"""What drives normal jobs: of an instance, or of a member of a cluster. It has one Spark session,
which starts with the first job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyrite.context import Collections
from pyrite.engine.member import RunContext
from pyrite.job import Job
from pyrite.spark.session import LazySession

if TYPE_CHECKING:
    from pyrite.exchange.deployment import Deployment
    from pyrite.exchange.driving import HandOver
    from pyrite.spark.execution import SparkRun


class SparkDriver:
    def __init__(self, session: LazySession) -> None:
        self.session = session

    @staticmethod
    def on(master: str | None, conf: Mapping[str, str] | None = None) -> SparkDriver:
        """One with a session of its own on this master; by default in local mode."""
        return SparkDriver(LazySession(master=master, conf=conf, spark=None))

    def new_run(
        self,
        job: Job,
        execution_id: str,
        *,
        collections: Collections,
        deployment: Deployment | None = None,
        on_end: Callable[[BaseException | None], None],
        on_running: Callable[[], None],
        hand_over: HandOver | None = None,
    ) -> SparkRun:
        """One run of a job, which has not begun yet. Raises PyriteError if the job cannot run.

        `deployment` is what goes along; by default it is read here, as the config of the job says.
        With `hand_over` somebody else completes the job.
        """
        # Imported here, because Arrow takes long to load and light jobs do not need it.
        from pyrite.exchange.deployment import Deployment
        from pyrite.spark.execution import SparkRun

        job.dag.validate()
        return SparkRun(
            job.dag,
            RunContext(
                job_name=job.name,
                job_id=job.id,
                execution_id=execution_id,
                member_count=1,
                collections=collections,
            ),
            session=self.session,
            config=job.config,
            deployment=Deployment.of(job.config) if deployment is None else deployment,
            on_end=on_end,
            on_running=on_running,
            hand_over=hand_over,
        )

    def close(self) -> None:
        """Stops the session, if it was started here."""
        self.session.stop()
