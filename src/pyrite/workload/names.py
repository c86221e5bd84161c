"""The public names of the package `pyrite.workload`."""

from pyrite.errors import InvalidWorkload, JobsFailed, RunBroken, StoreInUse
from pyrite.workload.input.jobs.secrets import Secret
from pyrite.workload.input.schedule import Schedule
from pyrite.workload.outcomes import NoResult
from pyrite.workload.run import Run
from pyrite.workload.scheduling.retry_wait import RetryWait
from pyrite.workload.scheduling.states import JobState, OnError
from pyrite.workload.workers.transient.spark_executor import SparkExecutor
from pyrite.workload.workload import Workload

__all__ = [
    "InvalidWorkload",
    "JobState",
    "JobsFailed",
    "NoResult",
    "OnError",
    "RetryWait",
    "Run",
    "RunBroken",
    "Schedule",
    "Secret",
    "SparkExecutor",
    "StoreInUse",
    "Workload",
]
