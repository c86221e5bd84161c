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
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yaml import MappingNode, Node, ScalarNode, SequenceNode

from pyrite.errors import InvalidWorkload
from pyrite.functions import shorten
from pyrite.workload.input.jobs.job import OPTIONS as JOB_OPTIONS
from pyrite.workload.input.options import Options, checked
from pyrite.workload.input.schedule import Schedule
from pyrite.workload.input.tables import without_garbage_collection
from pyrite.workload.input.yaml_nodes import YamlFile
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
    "on_end",
)
SECTIONS = ("jobs", "schedule", *OPTIONS)

_OF_A_JOB = ("command", *JOB_OPTIONS)

_JOB = re.compile(r"(?:^|job )'(.+?)'")
"""How a problem names its job, by which the line of the job is found."""

Entries = dict[str, tuple[ScalarNode, Node]]


@dataclass(frozen=True, slots=True)
class Written:
    """The content of a file: the jobs, their dependencies, and the options of the run."""

    workload: Workload
    schedule: Schedule | None = None
    options: dict[str, Any] = field(default_factory=dict)


@without_garbage_collection()
def read_yaml(
    path: Path, chosen: Mapping[str, Any] | None = None, *, name: str | None = None
) -> Written:
    """Reads a workload from a YAML file and checks all of it. The options in `chosen` replace those
    of the file. The path of the store is relative to the folder of the file. Raises InvalidWorkload
    with all problems and their lines in the file, which they call `name`."""
    reader = _Reader(path, name or str(path))
    written = reader.read(dict(chosen or {}))
    if reader.file.problems:
        raise InvalidWorkload(reader.file.problems)
    return written


class _Reader:
    def __init__(self, path: Path, name: str) -> None:
        self._folder = path.parent
        self._name = name
        self.file = YamlFile(path, name)
        self._nodes: dict[str, Node] = {}  # of the job with this id

    def read(self, chosen: dict[str, Any]) -> Written:
        root = self.file.root
        sections = self.file.entries(root) if isinstance(root, MappingNode) else {}
        if "jobs" not in sections:
            raise InvalidWorkload(
                [
                    *self.file.problems,
                    f"'{self._name}' must have 'jobs:', and under it the id and the command of "
                    "each job",
                ]
            )
        self.file.check_known(sections, SECTIONS, sections, what=f"'{self._name}' has")
        options = self._options({n: s for n, s in sections.items() if n in OPTIONS}, chosen)
        rows = self._rows(sections["jobs"][1])
        schedule = self._schedule(sections["schedule"][1]) if "schedule" in sections else None
        workload = Workload.from_table(rows)
        pools = options.get("pools", {})
        if not isinstance(pools, Mapping):  # one problem is enough
            pools = {row.get("pool"): 1 for row in rows if isinstance(row.get("pool"), str)}
        totals: dict[str, Any] = {n: options[n] for n in ("cpus", "memory") if n in options}
        try:
            totals = {} if _problems(totals) else totals
            workload.validate(schedule, pools=pools, on_end=options.get("on_end"), **totals)
        except InvalidWorkload as error:
            for problem in error.problems:
                named = _JOB.search(problem)
                self.file.say(problem, self._nodes.get(named[1]) if named else None)
        return Written(workload, schedule, options)

    # The options of the run

    def _options(self, nodes: Entries, chosen: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, (key, node) in nodes.items():
            if name == "pools" and isinstance(node, MappingNode):
                for pool, _ in node.value:
                    self.file.name(pool, "the name of a pool")
            value = self.file.value(node)
            if name == "store" and value is not None:
                value = self._store(key, value)
            if value is not None:
                found[name] = value
        found.update(chosen)
        for problem in _problems(found):
            wrong = [name for name in nodes if problem in _problems({name: found.get(name)})]
            is_text = wrong == ["rerun"] and isinstance(found["rerun"], str)
            hint = ", a text; write true or false, without quotes" if is_text else ""
            self.file.say(problem + hint, nodes[wrong[0]][0] if wrong else None)
        return found

    def _store(self, key: ScalarNode, store: Any) -> str | None:
        if isinstance(store, (str, int, float)):
            return os.path.join(self._folder, str(store))
        self.file.say(
            f"'store:' in '{self._name}' must be the path of a folder; got {shorten(store)}", key
        )
        return None

    # The jobs

    def _rows(self, jobs: Node) -> list[dict[str, Any]]:
        rows: list[dict[str, Any] | None] = []
        if isinstance(jobs, MappingNode):
            rows = [self._row(id, job) for id, job in self.file.pairs(jobs)]
        elif isinstance(jobs, SequenceNode):
            rows = [self._listed(job) for job in jobs.value]
        else:
            self.file.say(
                f"'jobs:' in '{self._name}' must be a mapping from ids to commands, or a list of "
                f"{{job: ..., command: ...}}; got {shorten(self.file.value(jobs))}",
                jobs,
            )
        return [row for row in rows if row is not None]

    def _listed(self, job: Node) -> dict[str, Any] | None:
        """The row of a job in a list."""
        entries = self.file.entries(job) if isinstance(job, MappingNode) else {}
        if "job" not in entries:
            self.file.say("each job of a list is written as {job: ..., command: ...}", job)
            return None
        _, id = entries.pop("job")
        return self._row(id, job, entries)

    def _row(self, key: Node, job: Node, entries: Entries | None = None) -> dict[str, Any] | None:
        id = self.file.name(key, "the id of a job")
        if id is None:
            return None
        if id in self._nodes:
            self.file.say_duplicate(id, self._nodes[id], key)
            return None
        self._nodes[id] = key
        row: dict[str, Any] = {"job": id}
        if isinstance(job, MappingNode):
            entries = self.file.entries(job) if entries is None else entries
            self.file.check_known(entries, _OF_A_JOB, entries, what=f"job '{id}' has")
            for name, (_, node) in entries.items():
                if name in _OF_A_JOB:
                    row[name] = self._option(name, node)
        else:
            row["command"] = self._command(job)
        if row.get("command") is None:
            self.file.say(f"job '{id}' has no command", key)
            row["command"] = ["unknown"]  # so that the jobs downstream of it have no problem
        return row

    def _option(self, name: str, node: Node) -> Any:
        if name == "command":
            return self._command(node)
        if name == "after":
            listed = node.value if isinstance(node, SequenceNode) else [node]
            if listed != [node] or self.file.value(node) is not None:
                ids = [self.file.name(id, "an id in 'after:'") for id in listed]
                return [id for id in ids if id is not None]
            return None
        if name == "env" and isinstance(node, MappingNode):
            return {
                self.file.name(variable, "the name of a variable"): self.file.word(value)
                for variable, value in self.file.pairs(node)
            }
        if name == "kwargs" and isinstance(node, MappingNode):
            for parameter, _ in node.value:
                self.file.name(parameter, "the name of a parameter")
        return self.file.value(node)

    def _command(self, node: Node) -> Any:
        if isinstance(node, SequenceNode):
            return self.file.words(node)
        return self.file.value(node)

    # The schedule

    def _schedule(self, edges: Node) -> Schedule | None:
        if not isinstance(edges, SequenceNode):
            value = self.file.value(edges)
            if value is not None:
                self.file.say(
                    f"'schedule:' in '{self._name}' must be a list of {{from: ..., to: ...}}; got "
                    f"{shorten(value)}",
                    edges,
                )
            return None
        pairs = [self._edge(edge) for edge in edges.value]
        return Schedule([pair for pair in pairs if pair is not None])

    def _edge(self, edge: Node) -> tuple[str, str] | None:
        ends: list[Node] = edge.value if isinstance(edge, SequenceNode) else []
        if isinstance(edge, MappingNode):
            entries = self.file.entries(edge)
            self.file.check_known(entries, ("from", "to"), entries, what="the edge has")
            ends = [entries[name][1] for name in ("from", "to") if name in entries]
        if len(ends) != 2:
            self.file.say("an edge is written as {from: ..., to: ...} or [upstream, job]", edge)
            return None
        above, below = (self.file.name(end, "the id of a job") for end in ends)
        for id, node in ((above, ends[0]), (below, ends[1])):
            if id is not None:
                self._nodes.setdefault(id, node)
        return (above, below) if above is not None and below is not None else None


def _problems(options: Mapping[str, Any]) -> list[str]:
    try:
        checked(
            Options(
                **{
                    name: value
                    for name, value in options.items()
                    if name not in ("store", "on_end")
                }
            )
        )
    except InvalidWorkload as error:
        return error.problems
    return []
