"""A graph drawn with characters, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from pyrite.drawing.boxes import Arrow, Box


def text(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> str:
    """The graph as text: one line per box, and below it the boxes that it sends items to.

    >>> arrows = [Arrow("a", "b"), Arrow("b", "c", "distributed")]
    >>> print(text([Box("a"), Box("b"), Box("c")], arrows))
    a
    │
    b
    ┃ distributed
    c
    """
    lines: list[str] = []
    for i, box in enumerate(boxes):
        lines.append(f"{box.name} ({box.note})" if box.note else box.name)
        following = boxes[i + 1].name if i + 1 < len(boxes) else None
        outbound = [arrow for arrow in arrows if arrow.source == box.name]
        only_follower = len(outbound) == 1 and outbound[0].destination == following
        if only_follower and sum(arrow.destination == following for arrow in arrows) == 1:
            lines.append(
                f"{'┃' if outbound[0].crosses_members else '│'} {outbound[0].label}".rstrip()
            )
            continue
        for arrow in outbound:
            corner = "└" if arrow is outbound[-1] else "├"
            line = "━━" if arrow.crosses_members else "──"
            lines.append(
                f"{corner}{line}> {arrow.destination}{f'  {arrow.label}' if arrow.label else ''}"
            )
        if following is not None:
            lines.append("")
    return "\n".join(lines) or "(an empty DAG)"
