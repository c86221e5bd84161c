"""The schedule: a DAG over job ids, which says which job depends on which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from pyrite.errors import InvalidWorkload
from pyrite.functions import shorten
from pyrite.workload.input.tables import as_columns, job_id, without_garbage_collection


class Schedule:
    """The dependencies between jobs, made from pairs of ids `(upstream, downstream)`. A pair of
    twice the same id declares a job without dependencies.

    >>> Schedule([("a", "b"), ("a", "c"), ("d", "d")]).edges
    [('a', 'b'), ('a', 'c')]
    """

    def __init__(self, edges: Iterable[tuple[Any, Any]] = ()) -> None:
        given: object = edges
        if not isinstance(given, Iterable):
            raise InvalidWorkload(
                [f"a schedule is made from pairs (upstream, downstream); got {shorten(given)}"]
            )
        problems: list[str] = []
        sources: list[Any] = []
        destinations: list[Any] = []
        for n, edge in enumerate(edges):
            try:
                source, destination = edge
            except (TypeError, ValueError):
                problems.append(
                    f"edge {n} of the schedule must be a pair (upstream, downstream); got {edge!r}"
                )
                continue
            sources.append(source)
            destinations.append(destination)
        if problems:
            raise InvalidWorkload(problems)
        self._set(sources, destinations)

    @classmethod
    @without_garbage_collection()
    def from_table(cls, table: Any) -> Schedule:
        """Makes a schedule from a table with the columns `from` and `to`: a list of dicts, a dict
        of columns, or a pandas, polars or Arrow table."""
        columns = as_columns(table, what="schedule", required=("from", "to"))
        schedule = cls.__new__(cls)
        schedule._set(columns["from"], columns["to"])
        return schedule

    def _set(self, sources: Sequence[Any], destinations: Sequence[Any]) -> None:
        problems: list[str] = []
        froms = _ids(sources, "from", problems)
        tos = _ids(destinations, "to", problems)
        if problems:
            raise InvalidWorkload(problems)
        pairs = dict.fromkeys(zip(froms, tos))  # without duplicates, in the given order
        self.ids: dict[str, None] = dict.fromkeys(chain.from_iterable(pairs))
        self.edges: list[tuple[str, str]] = [pair for pair in pairs if pair[0] != pair[1]]

    def __repr__(self) -> str:
        return f"<Schedule of {len(self.ids)} jobs and {len(self.edges)} edges>"


def _ids(values: Sequence[Any], column: str, problems: list[str]) -> list[str]:
    if set(map(type, values)) == {str} and all(values) and "".join(values).isascii():
        return list(values)
    ids = []
    for n, value in enumerate(values):
        try:
            ids.append(job_id(value))
        except ValueError as error:
            problems.append(f"row {n} of the schedule: '{column}' {error}")
    return ids


def upstream_of(
    count: int, edges: Iterable[tuple[int, int]]
) -> tuple[list[list[int]], list[list[int]]]:
    """The direct upstream jobs and the direct downstream jobs of each of `count` jobs."""
    upstream: list[list[int]] = [[] for _ in range(count)]
    downstream: list[list[int]] = [[] for _ in range(count)]
    for source, destination in edges:
        upstream[destination].append(source)
        downstream[source].append(destination)
    return upstream, downstream


def in_order(upstream: Sequence[Sequence[int]], downstream: Sequence[Sequence[int]]) -> list[int]:
    """The jobs in topological order. Jobs on a cycle, or downstream of one, are missing.

    >>> in_order([[1], []], [[], [0]])
    [1, 0]
    """
    keys = [len(jobs) for jobs in upstream]
    order = [job for job, key in enumerate(keys) if not key]
    for job in order:
        for below in downstream[job]:
            keys[below] -= 1
            if not keys[below]:
                order.append(below)
    return order


def find_cycle(upstream: Sequence[Sequence[int]], suspects: Iterable[int]) -> list[int]:
    """One cycle among the jobs that `in_order` left out, in the direction of the edges. The first
    job is repeated at the end."""
    left = set(suspects)
    job = next(iter(left))
    seen: dict[int, int] = {}
    path: list[int] = []
    while job not in seen:
        seen[job] = len(path)
        path.append(job)
        # Each job that `in_order` left out has such an upstream job.
        job = next(above for above in upstream[job] if above in left)
    cycle = path[seen[job] :][::-1]
    smallest = cycle.index(min(cycle))
    cycle = cycle[smallest:] + cycle[:smallest]
    return [*cycle, cycle[0]]


def remaining_paths(
    order: Sequence[int], downstream: Sequence[Sequence[int]], seconds: Mapping[int, float]
) -> list[float]:
    """For each job, the duration of the longest path that starts with it, in seconds. A job of
    unknown duration counts with the mean duration.

    >>> remaining_paths([0, 1, 2], [[1, 2], [], []], {0: 1.0, 1: 5.0, 2: 3.0})
    [6.0, 5.0, 3.0]
    """
    mean = sum(seconds.values()) / len(seconds) if seconds else 0.0
    remaining = [0.0] * len(downstream)
    for job in reversed(order):
        below = downstream[job]
        remaining[job] = seconds.get(job, mean) + (
            max(remaining[b] for b in below) if below else 0.0
        )
    return remaining
