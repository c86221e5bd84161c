"""The settings of a job that few jobs have, as the master needs them. A plan has them by job
number, so that the other jobs cost nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrite.functions import shorten
from pyrite.workload.scheduling.retry_wait import RetryWait, retry_wait

if TYPE_CHECKING:
    from pyrite.workload.input.jobs import Job


@dataclass(frozen=True, slots=True)
class Settings:
    retry_wait: RetryWait | None = None


NO_SETTINGS = Settings()


def settings_of(job: Job) -> Settings:
    """The settings of a job without problems."""
    return Settings(
        retry_wait=retry_wait(job.retry_wait) if job.retry_wait is not None else None,
    )


def setting_problems(job: Job) -> list[str]:
    """What is wrong with these options of a job, as the ends of sentences that begin with the
    job."""
    problems = []
    if job.retry_wait is not None:
        try:
            retry_wait(job.retry_wait)
        except ValueError as error:
            problems.append(f"has retry_wait={shorten(job.retry_wait)}; {error}")
    return problems
