"""A graph in Mermaid's language."""

from __future__ import annotations

from collections.abc import Sequence

from pyrite.drawing.boxes import Arrow, Box


def mermaid(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> str:
    """The graph in Mermaid's language.

    >>> print(mermaid([Box("a"), Box("b")], [Arrow("a", "b", "partitioned")]))
    flowchart TD
      v0["a"]
      v1["b"]
      v0 -->|partitioned| v1
    """
    ids = {box.name: f"v{i}" for i, box in enumerate(boxes)}
    lines = ["flowchart TD"]
    for box in boxes:
        note = f"<br/>{_entities(box.note)}" if box.note else ""
        lines.append(f'  {ids[box.name]}["{_entities(box.name)}{note}"]')
        if box.color:
            lines.append(f"  style {ids[box.name]} fill:{box.color}")
    for arrow in arrows:
        line = "==>" if arrow.crosses_members else "-->"
        label = f"|{arrow.label}|" if arrow.label else ""
        lines.append(f"  {ids[arrow.source]} {line}{label} {ids[arrow.destination]}")
    return "\n".join(lines)


def _entities(name: str) -> str:
    """Text for Mermaid, with the characters that it gives a meaning as numbered entities."""
    return "".join(f"#{ord(c)};" if c in '"<>&#|[]{}' or not c.isprintable() else c for c in name)
