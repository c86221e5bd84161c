"""A graph in Graphviz' language."""

from __future__ import annotations

from collections.abc import Sequence

from pyrite.drawing.boxes import Arrow, Box


def dot(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> str:
    """The graph in Graphviz' language.

    >>> print(dot([Box("a"), Box("b", "x 2")], [Arrow("a", "b", "distributed broadcast")]))
    digraph DAG {
      node [shape=box, style=rounded];
      "a" [label="a"];
      "b" [label="b\\nx 2"];
      "a" -> "b" [label="distributed broadcast", style=bold];
    }
    """
    lines = ["digraph DAG {", "  node [shape=box, style=rounded];"]
    for box in boxes:
        label = _quoted(box.name)[:-1] + (f"\\n{box.note}" if box.note else "") + '"'
        fill = f', style="rounded,filled", fillcolor="{box.color}"' if box.color else ""
        lines.append(f"  {_quoted(box.name)} [label={label}{fill}];")
    for arrow in arrows:
        looks = [f"label={_quoted(arrow.label)}"] if arrow.label else []
        if arrow.crosses_members:
            looks.append("style=bold")
        suffix = f" [{', '.join(looks)}]" if looks else ""
        lines.append(f"  {_quoted(arrow.source)} -> {_quoted(arrow.destination)}{suffix};")
    return "\n".join([*lines, "}"])


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
