"""A job of a workload as the user defined it, and the checks of its options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

from pyrite.functions import shorten
from pyrite.workload.input.jobs.settings import setting_problems
from pyrite.workload.input.jobs.within import within_problems
from pyrite.workload.scheduling.retry_wait import RetryWait
from pyrite.workload.system.numbers import is_number, is_whole

NO_INPUTS: Mapping[str, Any] = {}


class Job(NamedTuple):
    """`after` has the ids of the upstream jobs that the job names itself. A schedule may add
    more."""

    id: str
    command: Any
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}
    timeout: float | None = None
    retries: int = 0
    priority: int = 0
    pool: str | None = None
    light: bool = False
    after: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = NO_INPUTS
    over: str | None = None
    retry_wait: float | RetryWait | None = None
    files_in: Sequence[str | PathLike[str]] = ()
    files_out: Sequence[str | PathLike[str]] = ()
    env: Mapping[str, Any] | None = None
    cwd: str | os.PathLike[str] | None = None
    cpus: float | None = None
    memory: str | int | None = None
    on_end: Callable[[dict[str, Any]], Any] | str | None = None


OPTIONS = Job._fields[2:]


def pool_problem(pool: str) -> str:
    return (
        f"is in the pool '{pool}', which has no size; give the number of its jobs that may run at "
        f"the same time: pools={{'{pool}': 1}}"
    )


def option_problems(job: Job) -> list[str]:
    """What is wrong with the options of a job, as the ends of sentences that begin with the job:
    'has a timeout of -1; ...'."""
    problems = []
    pool: object = job.pool
    light: object = job.light
    over: object = job.over
    if not isinstance(job.args, Sequence) or isinstance(job.args, (str, bytes)):
        problems.append(f"has args={shorten(job.args)}; args must be a list")
    if not isinstance(job.kwargs, Mapping) or not all(isinstance(name, str) for name in job.kwargs):
        problems.append(f"has kwargs={shorten(job.kwargs)}; kwargs must be a dict with str keys")
    if job.timeout is not None and not (is_number(job.timeout) and job.timeout > 0):
        problems.append(
            f"has timeout={shorten(job.timeout)}; timeout must be a number of seconds above 0"
        )
    if not is_whole(job.retries, least=0):
        problems.append(
            f"has retries={shorten(job.retries)}; retries must be an integer, 0 or more"
        )
    if not is_whole(job.priority):
        problems.append(
            f"has priority={shorten(job.priority)}; priority must be an integer (the lowest starts "
            "first)"
        )
    if pool is not None and not isinstance(pool, str):
        problems.append(f"has pool={shorten(pool)}; pool must be the name of a pool")
    if not isinstance(light, bool):
        problems.append(f"has light={shorten(light)}; light must be True or False")
    if over is not None and not isinstance(over, str):
        problems.append(
            f"has over={shorten(over)}; over must be the id of the job whose result has the "
            "elements"
        )
    if over is not None and job.files_out:
        problems.append(
            "has files_out, but all jobs of a map would write the same files; return the path of "
            "each file instead"
        )
    for name in ("files_in", "files_out"):
        paths: object = getattr(job, name)
        if not isinstance(paths, (list, tuple)) or not all(map(_is_path, paths)):
            problems.append(f"has {name}={shorten(paths)}; {name} must be a list of paths")
    return [*problems, *setting_problems(job), *within_problems(job)]


def _is_path(value: object) -> bool:
    return isinstance(value, (str, PathLike)) and bool(str(value))
