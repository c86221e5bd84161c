"""The settings of a job that few jobs have, as the master needs them. A plan has them by job
number, so that the other jobs cost nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrite.functions import shorten
from pyrite.workload.input.jobs import amounts
from pyrite.workload.scheduling.retry_wait import RetryWait, retry_wait

if TYPE_CHECKING:
    from pyrite.workload.input.jobs.job import Job


@dataclass(frozen=True, slots=True)
class Settings:
    """`cores` are thousandths; `memory` is in bytes. 0 means that the job does not say."""

    retry_wait: RetryWait | None = None
    cores: int = 0
    memory: int = 0


NO_SETTINGS = Settings()


def settings_of(job: Job) -> Settings:
    """The settings of a job without problems."""
    return Settings(
        retry_wait=retry_wait(job.retry_wait) if job.retry_wait is not None else None,
        cores=amounts.cores(job.cpus) if job.cpus is not None else 0,
        memory=amounts.memory(job.memory) if job.memory is not None else 0,
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
    for name, value, read in (
        ("cpus", job.cpus, amounts.cores),
        ("memory", job.memory, amounts.memory),
    ):
        if value is not None:
            try:
                read(value)
            except ValueError as error:
                problems.append(f"has {name}={shorten(value)}; {error}")
    return problems


@dataclass(frozen=True, slots=True)
class Totals:
    """What the running jobs may use together."""

    cores: int
    memory: int

    def problems(self, settings: Settings) -> list[str]:
        """Whether a job wants more than that, as the ends of sentences that begin with the job."""
        found = []
        if settings.cores > self.cores:
            found.append(
                f"has cpus={amounts.cores_text(settings.cores)}, but all jobs together have "
                f"{amounts.cores_text(self.cores)}; run(cpus=...) sets another total"
            )
        if settings.memory > self.memory:
            found.append(
                f"has memory={amounts.memory_text(settings.memory)}, but all jobs together have "
                f"{amounts.memory_text(self.memory)}; run(memory=...) sets another total"
            )
        return found


def totals(cpus: float | None = None, memory: str | int | None = None) -> Totals:
    """The totals that the user gave, or else those of this machine. Raises ValueError if they are
    not valid."""
    return Totals(
        amounts.cores(cpus) if cpus is not None else amounts.cores_of_machine(),
        amounts.memory(memory) if memory is not None else amounts.memory_of_machine(),
    )
