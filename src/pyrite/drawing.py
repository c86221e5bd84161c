"""Pictures of a graph: Graphviz, Mermaid, SVG and plain text, from boxes and arrows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape as _escape_html


@dataclass(frozen=True, slots=True)
class Box:
    name: str
    note: str = ""
    color: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    source: str
    destination: str
    label: str = ""

    @property
    def crosses_members(self) -> bool:
        return self.label.startswith("distributed")


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


def svg(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> str:
    """The graph as an SVG document. The row of a box is its distance from the sources."""
    row_of = _rows(boxes, arrows)
    rows: dict[int, list[Box]] = {}
    for box in boxes:
        rows.setdefault(row_of[box.name], []).append(box)
    width_of = {box.name: 28 + 8 * max(len(box.name), len(box.note)) for box in boxes}
    row_width = {r: sum(width_of[b.name] + 40 for b in row) for r, row in rows.items()}
    label_width = max((7 * len(arrow.label) for arrow in arrows), default=0)
    width = max(row_width.values(), default=160) + label_width + 40
    height = 90 * (max(rows, default=0) + 1) + 10
    center: dict[str, tuple[float, float]] = {}
    for r, row in sorted(rows.items()):
        x = (width - label_width - row_width[r]) / 2
        for box in row:
            center[box.name] = (x + 20 + width_of[box.name] / 2, 90 * r + 35)
            x += width_of[box.name] + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" font-family="sans-serif" font-size="13">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#555"/></marker></defs>',
    ]
    for arrow in arrows:
        (x1, y1), (x2, y2) = center[arrow.source], center[arrow.destination]
        thickness = 3 if arrow.crosses_members else 1.5
        y1, y2 = (y1 + 20, y2 - 20) if y2 > y1 else (y1 - 20, y2 + 20)
        bend = (y2 - y1) / 2
        parts.append(
            f'<path d="M{x1:.0f} {y1:.0f} '
            f'C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}" '
            f'fill="none" stroke="#555" stroke-width="{thickness}" marker-end="url(#tip)"/>'
        )
        if arrow.label:
            parts.append(
                f'<text x="{(x1 + x2) / 2 + 8:.0f}" y="{(y1 + y2) / 2 + 4:.0f}" '
                f'fill="#777" font-size="11">'
                f"{escape(arrow.label)}</text>"
            )
    for box in boxes:
        x, y = center[box.name]
        half = width_of[box.name] / 2
        parts.append(
            f'<rect x="{x - half:.0f}" y="{y - 20:.0f}" width="{2 * half:.0f}" height="40" rx="8" '
            f'fill="{escape(box.color or "#fdf3d8")}" stroke="#a8802a"/>'
        )
        lift = -2 if box.note else 5
        parts.append(
            f'<text x="{x:.0f}" y="{y + lift:.0f}" text-anchor="middle">{escape(box.name)}</text>'
        )
        if box.note:
            parts.append(
                f'<text x="{x:.0f}" y="{y + 13:.0f}" text-anchor="middle" '
                f'font-size="11" fill="#777">{escape(box.note)}</text>'
            )
    return "\n".join([*parts, "</svg>"])


def _rows(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> dict[str, int]:
    """The length of the longest path from a source to each box; in a graph with a cycle, at most
    the number of boxes."""
    row = {box.name: 0 for box in boxes}
    for _ in boxes:
        changed = False
        for arrow in arrows:
            below = min(row[arrow.source] + 1, len(boxes) - 1)
            if row[arrow.destination] < below:
                row[arrow.destination] = below
                changed = True
        if not changed:
            break
    return row


def escape(text: str) -> str:
    """Text escaped for XML, which does not allow control characters."""
    return _escape_html("".join(c if c.isprintable() else " " for c in text))


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _entities(name: str) -> str:
    """Text for Mermaid, with the characters that it gives a meaning as numbered entities."""
    return "".join(f"#{ord(c)};" if c in '"<>&#|[]{}' or not c.isprintable() else c for c in name)
