"""A part of a workload: which jobs a run has if the user asks for some of them only, and the plan
cut down to them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from pyrite.errors import InvalidWorkload
from pyrite.functions import did_you_mean, shorten
from pyrite.workload.input.commands.command_book import CommandBook
from pyrite.workload.input.plan import Plan

Ids = str | Iterable[str] | None


@dataclass(frozen=True, slots=True)
class Part:
    """The jobs that the user asks for, by id.

    `only` are exactly these jobs; `from_` these and all jobs downstream of them; `to` these and all
    jobs upstream of them. With both `from_` and `to`, the jobs that are in both, which are those on
    the way from one to the other.
    """

    only: tuple[str, ...] | None = None
    from_: tuple[str, ...] | None = None
    to: tuple[str, ...] | None = None

    @classmethod
    def of(cls, *, only: Ids = None, from_: Ids = None, to: Ids = None) -> Part | None:
        """The part that the options of a run describe; None if they describe the whole."""
        part = cls(_ids("only", only), _ids("from_", from_), _ids("to", to))
        if part == cls():
            return None
        if part.only is not None and (part.from_ is not None or part.to is not None):
            raise InvalidWorkload(["only= cannot be used together with from_= or to="])
        return part


def selected(part: Part, plan: Plan) -> set[int]:
    """The numbers of the jobs of a part. Raises InvalidWorkload if it names a job that does not
    exist, or if no job is left."""
    number = {id: n for n, id in enumerate(plan.ids)}
    problems = [
        f"{name}= names the job '{id}', but there is no such job{did_you_mean(id, number)}"
        for name in _OPTIONS
        for id in getattr(part, name) or ()
        if id not in number
    ]
    if problems:
        raise InvalidWorkload(problems)

    def reached(ids: tuple[str, ...] | None, steps: Sequence[Sequence[int]]) -> set[int]:
        return reachable([number[id] for id in ids or ()], steps)

    if part.only is not None:
        found = {number[id] for id in part.only}
    elif part.from_ is None:
        found = reached(part.to, plan.upstream)
    elif part.to is None:
        found = reached(part.from_, plan.downstream)
    else:
        found = reached(part.from_, plan.downstream) & reached(part.to, plan.upstream)
    if not found:
        raise InvalidWorkload([f"no job is selected by {_described(part)}"])
    return found


def reachable(first: Iterable[int], steps: Sequence[Sequence[int]]) -> set[int]:
    """These jobs and all that can be reached from them.

    >>> reachable([1], [[], [2], [3], []])
    {1, 2, 3}
    """
    found = set(first)
    waiting = list(found)
    while waiting:
        for job in steps[waiting.pop()]:
            if job not in found:
                found.add(job)
                waiting.append(job)
    return found


def cut(plan: Plan, book: CommandBook, chosen: set[int]) -> tuple[Plan, CommandBook]:
    """The plan of these jobs. It also has their direct upstream jobs, without the upstream jobs of
    those: they are `given`, which means that they do not run, and their earlier results are used.
    Except maps: their branches are known only in a run, where those that are up to date are
    skipped.
    """
    chosen = _with_maps(plan, chosen)
    given = {above for job in chosen for above in plan.upstream[job]} - chosen
    kept = sorted(chosen | given)
    new = {job: n for n, job in enumerate(kept)}
    upstream = [[new[u] for u in plan.upstream[job]] if job in chosen else [] for job in kept]
    downstream: list[list[int]] = [
        [new[b] for b in plan.downstream[job] if b in chosen] for job in kept
    ]
    changes: dict[str, Any] = {
        "upstream": upstream,
        "downstream": downstream,
        "order": [new[job] for job in plan.order if job in new],
        "passed": [
            tuple(new[u] for u in plan.passed[job]) if job in chosen else () for job in kept
        ],
        "given": frozenset(new[job] for job in given),
        "left_out": frozenset(id for job, id in enumerate(plan.ids) if job not in new),
    }
    blobs = list(kept)
    changes["maps"] = {}
    for job in kept:
        if job in plan.maps:
            mapped = plan.maps[job]
            passed = tuple(new[u] for u in mapped.passed)
            cut_map = replace(mapped, over=new[mapped.over], blob=len(blobs), passed=passed)
            changes["maps"][new[job]] = cut_map
            blobs.append(mapped.blob)
    for field in fields(plan):
        if field.name not in changes:
            changes[field.name] = _picked(getattr(plan, field.name), kept, new)
    spans = array("Q", [end for blob in blobs for end in book.spans[2 * blob : 2 * blob + 2]])
    uses = {n: book.uses[blob] for n, blob in enumerate(blobs) if blob in book.uses}
    return replace(plan, **changes), replace(book, spans=spans, uses=uses)


def _with_maps(plan: Plan, chosen: set[int]) -> set[int]:
    """These jobs and the maps that they need."""
    above = {above for job in chosen for above in plan.upstream[job]}
    maps = above.intersection(plan.maps) - chosen
    return _with_maps(plan, chosen | maps) if maps else chosen


def _picked(values: Any, kept: Sequence[int], new: dict[int, int]) -> Any:
    """A field of a plan for fewer jobs: a list with an element per job, a dict by job, or a set of
    jobs."""
    if isinstance(values, dict):
        return {new[job]: value for job, value in values.items() if job in new}
    if isinstance(values, set):
        return {new[job] for job in values if job in new}
    assert isinstance(values, list)
    return [values[job] for job in kept]


_OPTIONS = ("only", "from_", "to")


def _ids(name: str, value: Ids) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return (value,)
    ids = tuple(value) if isinstance(value, Iterable) else None
    if ids is None or not all(isinstance(id, str) for id in ids):
        raise InvalidWorkload([f"{name}= must be a list of ids of jobs; got {shorten(value)}"])
    return ids


def _described(part: Part) -> str:
    given = [(name, getattr(part, name)) for name in _OPTIONS]
    return " and ".join(f"{name}={list(ids)}" for name, ids in given if ids is not None)
