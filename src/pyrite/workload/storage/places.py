"""Where the inputs of a job are: results in segments, elements of results, and groups of results
that become one list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from pyrite.workload.input.plan import Plan
from pyrite.workload.storage.cleanup_queue import read_result
from pyrite.workload.storage.element_reading import read_element
from pyrite.workload.storage.encoding import Encoded, gathered
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.store import Store

WHOLE = -1
_GROUP = -1


class Place(NamedTuple):
    """The record of a result, and an element of it, or WHOLE. A segment of -1 says that as many
    places as `offset` follow, which are one input together."""

    segment: int
    offset: int
    element: int = WHOLE


class NoPlace(LookupError):
    """The job with this number has no result."""


def input_places(plan: Plan, entries: Sequence[Entry], job: int) -> tuple[Place, ...]:
    """The places of the inputs of a job: its element if it is a branch, and the results that are
    passed. Raises NoPlace."""
    passed = plan.passed[job]
    found: list[Place] = []
    if job in plan.branch:
        found.append(_element(plan, entries, *plan.branch[job]))
    for above in passed:
        found.extend(result_places(plan, entries, above))
    return tuple(found)


def result_places(plan: Plan, entries: Sequence[Entry], job: int) -> Iterator[Place]:
    """The places of the result of a job. If the job is a map, that is a group."""
    if job in plan.maps:
        branches = plan.branches[job]
        yield Place(_GROUP, len(branches))
        for branch in branches:
            yield from result_places(plan, entries, branch)
    else:
        yield place_of(entries, job)


def readers(store: Store, places: Sequence[Place]) -> list[Callable[[], Encoded]]:
    """A function for each input, which reads it."""
    left = iter(places)
    return [_reader(store, place, left) for place in left]


def _reader(store: Store, place: Place, left: Iterator[Place]) -> Callable[[], Encoded]:
    segment, offset, element = place
    if segment == _GROUP:
        members = [_reader(store, next(left), left) for _ in range(offset)]
        return lambda: gathered([read() for read in members])
    path = store.segment(segment)
    if element == WHOLE:
        return lambda: read_result(path, offset)
    return lambda: read_element(path, offset, element)


def _element(plan: Plan, entries: Sequence[Entry], map: int, number: int) -> Place:
    over = plan.maps[map].over
    if over in plan.maps:
        return place_of(entries, plan.branches[over][number])
    return place_of(entries, map)._replace(element=number)


def place_of(entries: Sequence[Entry], job: int) -> Place:
    """The place of a result that is not gathered. Raises NoPlace."""
    result = entries[job].result
    if result is None:
        raise NoPlace(job)
    return Place(result.segment, result.offset)
