"""Workloads that are written in a YAML file:

workers: 2                       # any option of Workload.run
jobs:
  download:
    command: [curl, -o, data.csv, https://example.org/data.csv]
    retries: 3
  report:
    command: my_reports:monthly  # package.module:function
    kwargs: {month: 11}
    after: download
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pyrite.errors import InvalidWorkload
from pyrite.functions import shorten
from pyrite.workload.input.schedule import Schedule
from pyrite.workload.input.secrets import with_secrets
from pyrite.workload.workload import Workload

OPTIONS = (
    "workers",
    "kind",
    "store",
    "on_error",
    "crashes_max",
    "pools",
    "rerun",
    "max_jobs",
    "cpus",
    "memory",
)


@dataclass(frozen=True, slots=True)
class Written:
    """The content of a file: the jobs, their dependencies, and the options of the run."""

    workload: Workload
    schedule: Schedule | None = None
    options: dict[str, Any] = field(default_factory=dict)


def read_yaml(path: Path) -> Written:
    """Reads a workload from a YAML file. The path of the store is relative to the folder of the
    file. Raises InvalidWorkload if the file is not valid."""
    try:
        content = yaml.load(path.read_text(), with_secrets(yaml.SafeLoader))
    except OSError as error:
        raise InvalidWorkload([f"cannot read '{path}': {error.strerror}"]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidWorkload([f"'{path}' is not YAML: {error}"]) from None
    if not isinstance(content, Mapping) or "jobs" not in content:
        raise InvalidWorkload(
            [f"'{path}' must have 'jobs:', and under it the id and the command of each job"]
        )
    unknown = [str(key) for key in content if key not in ("jobs", "schedule", *OPTIONS)]
    if unknown:
        raise InvalidWorkload(
            [
                f"'{path}' has the unknown key '{name}:'; known are jobs, schedule, "
                f"{', '.join(OPTIONS)}"
                for name in unknown
            ]
        )
    options = {name: content[name] for name in OPTIONS if content.get(name) is not None}
    if "store" in options:
        store = options["store"]
        if not isinstance(store, (str, int, float)):
            raise InvalidWorkload(
                [f"'store:' in '{path}' must be the path of a folder; got {shorten(store)}"]
            )
        options["store"] = os.path.join(path.parent, str(store))
    schedule = content.get("schedule")
    return Written(
        Workload.from_table(_rows(content["jobs"], path)),
        None if schedule is None else _schedule(schedule, path),
        options,
    )


def _rows(jobs: Any, path: Path) -> list[Any]:
    if isinstance(jobs, list):
        return jobs
    if not isinstance(jobs, Mapping):
        raise InvalidWorkload(
            [
                f"'jobs:' in '{path}' must be a mapping from ids to commands, or a list of "
                f"{{job: ..., command: ...}}; got {shorten(jobs)}"
            ]
        )
    return [
        {"job": id, **(job if isinstance(job, Mapping) else {"command": job})}
        for id, job in jobs.items()
    ]


def _schedule(edges: Any, path: Path) -> Schedule:
    if isinstance(edges, list) and all(isinstance(edge, Mapping) for edge in edges):
        return Schedule.from_table(edges)
    if isinstance(edges, list):
        return Schedule([tuple(edge) if isinstance(edge, list) else edge for edge in edges])
    raise InvalidWorkload(
        [f"'schedule:' in '{path}' must be a list of {{from: ..., to: ...}}; got {shorten(edges)}"]
    )
