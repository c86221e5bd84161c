"""The graph of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyrite import drawing
from pyrite.drawing.folding import BOXES_MAX
from pyrite.workload.outcomes import COLORS
from pyrite.workload.scheduling.states import JobState


def graph(states: Mapping[str, JobState], edges: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """The graph as SVG, and a sentence about what it leaves out."""
    edges = [edge for edge in edges if edge[0] in states and edge[1] in states]
    if not edges:
        return "", "No job depends on another one."
    shown = drawing.svg(
        [drawing.Box(id, str(state), COLORS[state]) for id, state in states.items()],
        [drawing.Arrow(a, b) for a, b in edges],
        noun="jobs",
    )
    if len(states) <= BOXES_MAX:
        return shown, ""
    return shown, (
        f"The graph of {len(states):,} jobs is folded: jobs with similar names, with the same "
        "neighbours or in one chain are one box, with a bar of the colours of their states."
    )
