"""The graph of a report. If there are many jobs, those with the same name but for its numbers are
one box."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pyrite import drawing
from pyrite.functions import shorten_text
from pyrite.workload.outcomes import COLORS
from pyrite.workload.scheduling.states import JobState

JOBS_MAX = 300
BOXES_MAX = 60
NAME_CHARACTERS = 40

_NUMBERS = re.compile(r"\d+")
_WORST_FIRST = (
    *(JobState.CRASHED, JobState.FAILED, JobState.TIMEOUT, JobState.RUNNING, JobState.BLOCKED),
    *(JobState.CANCELLED, JobState.ASSIGNED, JobState.READY, JobState.WAITING),
    *(JobState.DONE, JobState.SKIPPED),
)


def graph(states: Mapping[str, JobState], edges: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """The graph as SVG, and a sentence about what it leaves out. There is no graph if there are
    many jobs and they have no names in common."""
    edges = [edge for edge in edges if edge[0] in states and edge[1] in states]
    if not edges:
        return "", "No job depends on another one."
    if len(states) <= JOBS_MAX:
        return _svg({id: (str(state), state) for id, state in states.items()}, edges), ""
    groups: dict[str, Counter[JobState]] = {}
    for id, state in states.items():
        groups.setdefault(group_of(id), Counter())[state] += 1
    count = f"{len(states):,} jobs"
    if len(groups) > BOXES_MAX:
        return "", f"The graph of {count} is left out."
    links = dict.fromkeys((group_of(a), group_of(b)) for a, b in edges)
    boxes = {
        name: (f"{sum(found.values()):,} jobs", next(s for s in _WORST_FIRST if found[s]))
        for name, found in groups.items()
    }
    shown = _svg(boxes, [link for link in links if link[0] != link[1]])
    return shown, (
        f"The graph of {count} is collapsed: jobs whose ids differ only in their numbers are one "
        "box, with the colour of the worst state among them."
    )


def group_of(id: str) -> str:
    """
    >>> group_of("load-2024-part7")
    'load-#-part#'
    """
    return _NUMBERS.sub("#", id)


def _svg(boxes: Mapping[str, tuple[str, JobState]], edges: Sequence[tuple[str, str]]) -> str:
    names = {
        id: id if len(id) <= NAME_CHARACTERS else f"{shorten_text(id, NAME_CHARACTERS - 6)} ({n})"
        for n, id in enumerate(boxes)
    }
    return drawing.svg(
        [drawing.Box(names[id], note, COLORS[state]) for id, (note, state) in boxes.items()],
        [drawing.Arrow(names[a], names[b]) for a, b in edges],
    )
