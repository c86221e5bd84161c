"""Makes a job from what a user or a table gives."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pyrite.workload.input.commands.parameters import parameters_of
from pyrite.workload.input.jobs.job import Job
from pyrite.workload.input.jobs.maps import element_of
from pyrite.workload.input.tables import job_id


def make_job(id: Any, command: Any, options: dict[str, Any]) -> Job:
    """Raises ValueError, with the end of a sentence, if the id is not one."""
    for name, value in options.items():
        converted = _CONVERTED.get(name)
        if converted is not None and value is not None:
            options[name] = converted(value)
    return Job(job_id(id), command, **options)


def after_parameters(job: Job, ids: Collection[str]) -> Job:
    """The job with `after` that has the jobs among `ids` that its parameters name, too."""
    args: object = job.args
    kwargs: object = job.kwargs
    if not isinstance(args, Sequence) or not isinstance(kwargs, Mapping):
        return job  # the check of its options says so
    parameters = parameters_of(job.command)
    inputs = job.inputs if isinstance(job.inputs, Mapping) else {}
    given = {*parameters.positional[: len(job.args)], *job.kwargs, *inputs}
    names = [
        name
        for name in (*parameters.positional, *sorted(parameters.named))
        if name in ids and name not in given and name != job.id
    ]
    if job.over is not None:
        element = element_of(job.over, parameters, job.args, {*given, *job.after}, ids)
        names = [name for name in names if element is None or name != element.parameter]
    return job._replace(after=tuple(dict.fromkeys([*job.after, *names])))


def _ids(after: Any) -> tuple[str, ...]:
    if hasattr(after, "tolist"):  # an array
        after = after.tolist()
    if isinstance(after, (set, frozenset)):
        after = sorted(map(str, after))  # not in the order of this process's hashes
    return tuple(map(str, after if isinstance(after, (list, tuple, dict)) else [after]))


def _paths(paths: Any) -> Any:
    return (paths,) if isinstance(paths, (str, os.PathLike)) else _list(paths)


def _list(values: Any) -> Any:
    return list(values) if hasattr(values, "tolist") else values  # an array


def _id(over: Any) -> Any:
    return str(over) if isinstance(over, int) else over


def _whole(value: Any) -> Any:
    """The int that a table library gave as a float, or as an integer type of its own."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return (
        int(value)
        if not isinstance(value, (int, str, float)) and hasattr(value, "__index__")
        else value
    )


_CONVERTED: dict[str, Callable[[Any], Any]] = {
    "args": _list,
    "retries": _whole,
    "priority": _whole,
    "memory": _whole,
    "after": _ids,
    "over": _id,
    "files_in": _paths,
    "files_out": _paths,
}
