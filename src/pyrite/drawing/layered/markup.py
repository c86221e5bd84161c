"""A graph in layers as SVG. A page colours it by its classes and fills in the rates; a picture that
stands alone has colours in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pyrite.drawing.boxes import Arrow, Box
from pyrite.drawing.folding import folded
from pyrite.drawing.layered.layout import Layout, Place, Point, Route, Size, layout
from pyrite.drawing.lettering import attribute, escape, shortened, width_of

_NAME: Final = 13.0
_NOTE: Final = 11.0
_LINE: Final = 15.0
_WIDEST_TEXT: Final = 210.0
_LEAST_WIDTH: Final = 72.0
_LEAST_LIVE_WIDTH: Final = 132.0
_LABEL: Final = 16.0
_METER: Final[Size] = (44.0, 5.0)
_SHARES: Final = 5.0
_MARGIN: Final = 12.0
_LABELS_MAX: Final = 150
"""A graph with more edges has no labels: they would double its height."""
_NAMES_IN_A_TITLE: Final = 12


def svg(
    boxes: Sequence[Box],
    arrows: Sequence[Arrow],
    *,
    unfold: Collection[str] = (),
    noun: str = "vertices",
    live: bool = True,
    meters: bool = True,
) -> str:
    """The graph as an SVG document. `live` is for a page: there are no colours in it, but room for
    a line below the note of each box, and, with `meters`, for one on each edge. A vertex is
    `<g class="vertex" data-vertex="NAME">`, and an edge is
    `<g class="edge" data-source="NAME" data-destination="NAME">`. A group also has the class
    `group`, and `data-members` with the names in it as JSON. The groups named in `unfold` are not
    folded; `*` means all."""
    known = {box.name for box in boxes}
    arrows = [arrow for arrow in arrows if {arrow.source, arrow.destination} <= known]
    graph = folded(boxes, arrows, unfold=unfold, noun=noun)
    number = {box.name: n for n, box in enumerate(graph.boxes)}
    arrows = graph.arrows
    labelled = len(arrows) <= _LABELS_MAX
    found = layout(
        [_size(box, live=live, group=box.name in graph.members) for box in graph.boxes],
        [(number[arrow.source], number[arrow.destination]) for arrow in arrows],
        [_label_size(arrow, meters=live and meters) if labelled else None for arrow in arrows],
    )
    paint = _Paint(live)
    width, height = found.width + 2 * _MARGIN, found.height + 2 * _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="{-_MARGIN:.0f} {-_MARGIN:.0f} {width:.0f} '
            f'{height:.0f}" font-family="sans-serif" font-size="{_NAME:.0f}">',
            *(
                _edge(arrow, route, paint, meters=meters)
                for arrow, route in zip(arrows, found.routes)
            ),
            *_vertices(graph.boxes, graph.members, found, paint),
            "</svg>",
        ]
    )


class _Paint:
    """Attributes with colours, or none if a page has the colours."""

    def __init__(self, live: bool) -> None:
        self.live = live

    def __call__(self, **attributes: str) -> str:
        if self.live:
            return ""
        return "".join(
            f' {name.replace("_", "-")}="{escape(value)}"' for name, value in attributes.items()
        )


def _lines(box: Box) -> list[str]:
    return [shortened(line, _NOTE, _WIDEST_TEXT) for line in box.note.splitlines()]


def _size(box: Box, *, live: bool, group: bool) -> Size:
    notes = _lines(box)
    text = max(
        [width_of(shortened(box.name, _NAME, _WIDEST_TEXT), _NAME)]
        + [width_of(line, _NOTE) for line in notes]
    )
    lines = 1 + len(notes) + live
    return (
        max(text + 24, _LEAST_LIVE_WIDTH if live else _LEAST_WIDTH),
        18 + _LINE * lines + (_SHARES + 2 if group else 0),
    )


def _label_size(arrow: Arrow, *, meters: bool) -> Size | None:
    meter = _METER if meters else (0.0, 0.0)
    if not arrow.label:
        return (meter[0], meter[1] + 4) if meters else None
    text = width_of(shortened(arrow.label, _NOTE, _WIDEST_TEXT), _NOTE)
    return max(text, meter[0]), _LABEL + (meter[1] + 2 if meters else 0)


def _edge(arrow: Arrow, route: Route, paint: _Paint, *, meters: bool) -> str:
    kind = "edge distributed" if arrow.crosses_members else "edge"
    source, destination = attribute(arrow.source), attribute(arrow.destination)
    ends = f'data-source="{source}" data-destination="{destination}"'
    thickness = "2.5" if arrow.crosses_members else "1.3"
    title = f"{arrow.source} → {arrow.destination}{f': {arrow.label}' if arrow.label else ''}"
    parts = [f'<g class="{kind}" {ends}><title>{escape(title)}</title>']
    if route.points:
        gap = route.label if arrow.label else None
        line = paint(stroke="#7d7d7d", stroke_width=thickness)
        parts.append(f'<path class="line" fill="none"{line} d="{_path(route.points, gap)}"/>')
        parts.append(f'<path class="tip"{paint(fill="#7d7d7d")} d="{_tip(route.points)}"/>')
    if route.label is not None:
        parts.append(_label(arrow, route.label, paint, meters=meters))
    return "".join([*parts, "</g>"])


def _label(arrow: Arrow, place: Place, paint: _Paint, *, meters: bool) -> str:
    parts = []
    if arrow.label:
        parts.append(
            f'<text class="label" x="{place.middle:.1f}" y="{place.y + 11.5:.1f}" '
            f'text-anchor="middle" font-size="{_NOTE:.0f}"{paint(fill="#7d7d7d")}>'
            f"{escape(shortened(arrow.label, _NOTE, _WIDEST_TEXT))}</text>"
        )
    if paint.live and meters:
        width, height = _METER
        at = f'x="{place.middle - width / 2:.1f}" y="{place.bottom - height - 1:.1f}"'
        parts.append(
            f'<g class="meter"><rect class="track" {at} width="{width:.0f}" '
            f'height="{height:.0f}" rx="2.5"/><rect class="level" {at} width="0" '
            f'height="{height:.0f}" rx="2.5"/></g>'
        )
    return "".join(parts)


def _path(points: Sequence[Point], gap: Place | None) -> str:
    """Curves between the layers, straight lines through them, nothing where the label stands."""
    (x, y), *rest = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for n, (x2, y2) in enumerate(rest):
        if n % 2:
            if gap is not None and abs(gap.middle - x2) < 0.5 and y <= gap.middle_y <= y2:
                below = gap.y + _LABEL
                parts.append(f"L{x2:.1f} {gap.y:.1f}M{x2:.1f} {below:.1f}")
            parts.append(f"L{x2:.1f} {y2:.1f}")
        elif abs(x - x2) < 0.5:
            parts.append(f"L{x2:.1f} {y2:.1f}")
        else:
            half = (y + y2) / 2
            parts.append(f"C{x:.1f} {half:.1f} {x2:.1f} {half:.1f} {x2:.1f} {y2:.1f}")
        x, y = x2, y2
    return "".join(parts)


def _tip(points: Sequence[Point]) -> str:
    x, y = points[-1]
    back = -7 if y >= points[-2][1] else 7
    return f"M{x:.1f} {y:.1f}l-3.5 {back}h7z"


def _vertices(
    boxes: Sequence[Box], members: Mapping[str, Sequence[Box]], found: Layout, paint: _Paint
) -> list[str]:
    return [
        _vertex(box, place, members.get(box.name), paint) for box, place in zip(boxes, found.places)
    ]


def _vertex(box: Box, place: Place, members: Sequence[Box] | None, paint: _Paint) -> str:
    name = attribute(box.name)
    kind, about, held = "vertex", box.name, ""
    if members is not None:
        kind = "vertex group"
        listed = ", ".join(each.name for each in members[:_NAMES_IN_A_TITLE])
        others = len(members) - _NAMES_IN_A_TITLE
        about += f": {listed}{f' and {others:,} others' if others > 0 else ''}"
        if paint.live:
            names = json.dumps([each.name for each in members])
            held = f' data-members="{attribute(names)}"'
    focus = f' tabindex="0" role="button" aria-label="{name}"' if paint.live else ""
    parts = [f'<g class="{kind}" data-vertex="{name}"{held}{focus}><title>{escape(about)}</title>']
    if members is not None:
        parts.append(_rect(place.moved(4, 4), "behind", paint(fill="#eeeae0", stroke="#b9a46e")))
    color = box.color or "#fdf3d8"
    parts.append(_rect(place, "box", paint(fill=color, stroke="#a8802a")))
    x, y = place.middle, place.y + 9
    parts.append(
        f'<text class="name" x="{x:.1f}" y="{y + 12:.1f}" text-anchor="middle"'
        f"{paint(fill='#1d2129')}>{escape(shortened(box.name, _NAME, _WIDEST_TEXT))}</text>"
    )
    small = f'x="{x:.1f}" text-anchor="middle" font-size="{_NOTE:.0f}"'
    for n, line in enumerate(_lines(box), start=1):
        parts.append(
            f'<text class="note" {small} y="{y + 11 + _LINE * n:.1f}"{paint(fill="#5f5f5f")}>'
            f"{escape(line)}</text>"
        )
    if paint.live:
        last = y + 11 + _LINE * (1 + len(_lines(box)))
        parts.append(f'<text class="rate" {small} y="{last:.1f}"></text>')
    if members is not None:
        parts.append(_shares(members, place, paint))
    return "".join([*parts, "</g>"])


def _rect(place: Place, kind: str, colors: str) -> str:
    return (
        f'<rect class="{kind}" x="{place.x:.1f}" y="{place.y:.1f}" width="{place.width:.1f}" '
        f'height="{place.height:.1f}" rx="8"{colors}/>'
    )


def _shares(members: Sequence[Box], place: Place, paint: _Paint) -> str:
    """A bar with how many members have which colour. A page fills it in itself."""
    x, y, width = place.x + 10, place.bottom - _SHARES - 6, place.width - 20
    parts = [f'<g class="shares" data-x="{x:.1f}" data-y="{y:.1f}" data-width="{width:.1f}">']
    colors = Counter(box.color for box in members if box.color and not paint.live)
    wide = {color: max(count / len(members), 0.03) for color, count in sorted(colors.items())}
    for color, part in wide.items():  # one of a thousand is seen, too
        share = width * part / sum(wide.values())
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{share:.1f}" height="{_SHARES:.0f}" '
            f'fill="{escape(color)}"/>'
        )
        x += share
    return "".join([*parts, "</g>"])
