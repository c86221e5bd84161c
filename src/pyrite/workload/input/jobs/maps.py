"""Maps: jobs with `over=`, which become one job per element of an upstream result when that result
is known. These jobs are the branches of the map."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyrite.workload.input.commands.parameters import Parameters
from pyrite.workload.input.fingerprints.digests import SIZE
from pyrite.workload.input.fingerprints.files import JobFiles

_BRANCH = re.compile(rf"(.+)\[(?:\d*|[0-9a-f]{{{2 * SIZE}}})\]", re.DOTALL)


class Element(NamedTuple):
    """The parameter that gets the element, if its name is known. `over` is the job whose result has
    the element."""

    over: str
    parameter: str | None = None
    is_positional: bool = True  # it follows the positional arguments


@dataclass(frozen=True, slots=True)
class Mapped:
    """What all branches of a map have in common. `over` is the job whose result has the elements,
    `blob` the number of the branches' command in the command book, and `passed` has the upstream
    jobs whose results each branch gets besides its element."""

    over: int
    blob: int
    passed: tuple[int, ...]
    fingerprint: bytes
    timeout: float | None
    files: JobFiles | None


def branch_id(map: str, index: int | str) -> str:
    """
    >>> branch_id("score", 3)
    'score[3]'
    """
    return f"{map}[{index}]"


def results_id(map: str, element: bytes) -> str:
    """The id under which the result of a branch is kept: with the digest of its element, because
    its number changes when elements are inserted."""
    return branch_id(map, element.hex())


def map_of(id: str) -> str:
    """The map of the branch that has this id, or whose results are kept under it; else the id."""
    match = _BRANCH.fullmatch(id)
    return match[1] if match else id


def taken_ids(ids: Iterable[str], maps: Collection[str]) -> list[tuple[str, str]]:
    """The ids that are reserved for branches, each with its map.

    >>> taken_ids(["score[7]", "score[x]", "other[7]"], {"score"})
    [('score[7]', 'score')]
    """
    return [(id, map) for id in ids if (map := map_of(id)) != id and map in maps]


def element_of(
    over: str,
    parameters: Parameters,
    args: Sequence[Any],
    given: Collection[str],
    jobs: Collection[str] = (),
) -> Element | None:
    """The parameter for the element: the first one that gets no value from `args`, is not `given`
    otherwise, and is not the id of another job; if there is none, the first one that may be. None
    if all parameters have values."""
    positional = parameters.positional
    if len(args) >= len(positional) and parameters.takes_any_position:
        return Element(over)
    others = parameters.named.difference(positional)
    names = [*positional[len(args) :], *filter(others.__contains__, parameters.required)]
    free = [name for name in dict.fromkeys([*names, *sorted(others)]) if name not in given]
    if not free:
        return None
    name = next((name for name in free if name not in jobs or name == over), free[0])
    is_next = name in positional and positional.index(name) == len(args)
    return Element(over, name, is_next)
