"""Draws the pictures of the documentation into docs/pictures/: `python -m scripts.draw_pictures`.

A picture is boxes on a grid, frames around some of them, and arrows. Those of DAGs are drawn by
Pyrite itself, and the rooms come from the import rules in pyproject.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from pyrite import DAG, between
from pyrite import processors as p

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"

LOOK = """
.paper { fill: #ffffff } .frame { fill: #f6f4ee; stroke: #d8d2c0 }
.box { fill: #fdf3d8; stroke: #a8802a } .disk { fill: #e3ecf7; stroke: #5b7ea8 }
.arrow { stroke: #666; fill: none; stroke-width: 1.5 } .tip { fill: #666 }
.dashed { stroke-dasharray: 5 4 } text { fill: #222; font: 13px sans-serif }
.note { fill: none }
.small { font-size: 11px; fill: #555 } .title { font-size: 12px; fill: #6b5a2a }
@media (prefers-color-scheme: dark) {
  .paper { fill: #16181d } .frame { fill: #1f2229; stroke: #3a3f4b }
  .box { fill: #3b3016; stroke: #c79a3c } .disk { fill: #1c2c40; stroke: #6f98c8 }
  .arrow { stroke: #aaa } .tip { fill: #aaa } text { fill: #eee }
  .small { fill: #bbb } .title { fill: #d8bd7a }
}
"""


@dataclass(frozen=True, slots=True)
class Box:
    """A box of some lines of text; the first is its title. `x` and `y` are of its centre."""

    x: float
    y: float
    lines: tuple[str, ...]
    kind: str = "box"
    width: float = 150

    @property
    def height(self) -> float:
        return 20 + 16 * len(self.lines)

    def edge_towards(self, x: float, y: float) -> tuple[float, float]:
        """The point on the rim of the box where a line to (x, y) leaves it."""
        dx, dy = x - self.x, y - self.y
        scale = min(
            self.width / 2 / abs(dx) if dx else float("inf"),
            self.height / 2 / abs(dy) if dy else float("inf"),
        )
        return self.x + dx * scale, self.y + dy * scale


@dataclass(frozen=True, slots=True)
class Arrow:
    source: str
    destination: str
    label: str = ""
    dashed: bool = False
    both: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame around what is in it, with a title in its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    title: str = ""


def picture(
    width: float,
    height: float,
    boxes: Mapping[str, Box],
    arrows: Sequence[Arrow] = (),
    frames: Sequence[Frame] = (),
) -> str:
    """The SVG document of a picture."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}">',
        f"<style>{LOOK}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto-start-reverse">'
        '<path class="tip" d="M0 0 L8 4 L0 8 z"/></marker></defs>',
        f'<rect class="paper" width="{width:g}" height="{height:g}" rx="10"/>',
    ]
    for frame in frames:
        parts.append(_rectangle("frame", frame.x, frame.y, frame.width, frame.height))
        parts.append(_text("title", frame.x + 12, frame.y + 18, frame.title, anchor="start"))
    for arrow in arrows:
        start, end = boxes[arrow.source], boxes[arrow.destination]
        (x1, y1), (x2, y2) = start.edge_towards(end.x, end.y), end.edge_towards(start.x, start.y)
        kind = "arrow dashed" if arrow.dashed else "arrow"
        tips = 'marker-end="url(#tip)"' + (' marker-start="url(#tip)"' if arrow.both else "")
        line = f"M{x1:.0f} {y1:.0f} L{x2:.0f} {y2:.0f}"
        parts.append(f'<path class="{kind}" d="{line}" {tips}/>')
        if arrow.label:
            across = abs(x2 - x1) > abs(y2 - y1)
            x, y = (x1 + x2) / 2 + (0 if across else 8), (y1 + y2) / 2 + (-7 if across else 4)
            parts.append(_text("small", x, y, arrow.label, anchor="middle" if across else "start"))
    for box in boxes.values():
        left, top = box.x - box.width / 2, box.y - box.height / 2
        parts.append(_rectangle(box.kind, left, top, box.width, box.height))
        for i, line in enumerate(box.lines):
            parts.append(_text("small" if i else "", box.x, top + 22 + 16 * i, line))
    return "\n".join([*parts, "</svg>", ""])


def _rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    size = f'width="{width:g}" height="{height:g}"'
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" {size} rx="8"/>'


def _text(kind: str, x: float, y: float, text: str, *, anchor: str = "middle") -> str:
    classes = f' class="{kind}"' if kind else ""
    return f'<text{classes} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def word_count() -> str:
    dag = DAG()
    lines = dag.vertex("lines", p.read_files("books/*.txt"))
    words = dag.vertex("words", p.flat_map(str.split))
    count = dag.vertex(
        "count", p.group_and_accumulate(key=str.lower, initial=0, accumulate=lambda n, _: n + 1)
    )
    sink = dag.vertex("sink", p.write_map("counts"))
    dag.edge(between(lines, words))
    dag.edge(between(words, count).distributed().partitioned(key=str.lower))
    dag.edge(between(count, sink))
    return dag.to_svg() + "\n"


def stages() -> str:
    boxes = {}
    for i, y in enumerate((70, 160, 250)):
        boxes[f"a{i}"] = Box(130, y, (f"task {i}", "lines + words"))
        boxes[f"b{i}"] = Box(430, y, (f"task {i}", "count + sink"))
    arrows = [
        Arrow(f"a{i}", f"b{j}", "packets by key" if (i, j) == (0, 0) else "")
        for i in range(3)
        for j in range(3)
    ]
    frames = [Frame(30, 20, 200, 280, "stage 1"), Frame(330, 20, 200, 280, "stage 2")]
    return picture(560, 320, boxes, arrows, frames)


def edges() -> str:
    """How the items of two senders go to three receivers, in each pattern."""
    patterns = {
        "unicast": [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)],
        "broadcast": [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)],
        "partitioned": [(0, 0), (0, 2), (1, 0), (1, 2)],
        "all_to_one": [(0, 1), (1, 1)],
        "isolated": [(0, 0), (1, 1)],
    }
    notes = {
        "unicast": "any one of them",
        "broadcast": "every one",
        "partitioned": "by key: a or c",
        "all_to_one": "always the same",
        "isolated": "the same number",
    }
    boxes: dict[str, Box] = {}
    arrows, frames = [], []
    for i, (pattern, ways) in enumerate(patterns.items()):
        left = 10 + 196 * i
        frames.append(Frame(left, 10, 186, 216, f"{pattern}: {notes[pattern]}"))
        for sender in (0, 1):
            boxes[f"{pattern} from {sender}"] = Box(left + 34, 92 + 70 * sender, ("",), width=36)
        for receiver in (0, 1, 2):
            name = "abc"[receiver] if pattern == "partitioned" else ""
            boxes[f"{pattern} to {receiver}"] = Box(
                left + 152, 62 + 64 * receiver, (name,), width=36
            )
        dashed = pattern == "unicast"
        arrows += [
            Arrow(f"{pattern} from {a}", f"{pattern} to {b}", dashed=dashed) for a, b in ways
        ]
    return picture(990, 236, boxes, arrows, frames)


def members() -> str:
    boxes = {}
    arrows = []
    for i, y in enumerate((88, 262)):
        boxes[f"lines {i}"] = Box(120, y, ("lines", "processors"), width=110)
        boxes[f"words {i}"] = Box(270, y, ("words", "processors"), width=110)
        boxes[f"count {i}"] = Box(560, y, ("count", "processors"), width=110)
        boxes[f"sink {i}"] = Box(710, y, ("sink", "processors"), width=110)
        arrows += [
            Arrow(f"lines {i}", f"words {i}"),
            Arrow(f"words {i}", f"count {i}", "a queue"),
            Arrow(f"count {i}", f"sink {i}"),
        ]
    arrows += [Arrow("words 0", "count 1"), Arrow("words 1", "count 0")]
    frames = [Frame(30, 20, 770, 120, "member 1"), Frame(30, 194, 770, 120, "member 2")]
    boxes["network"] = Box(590, 166, ("packets, encrypted",), "note", 150)
    return picture(830, 330, boxes, arrows, frames)


def durable() -> str:
    boxes = {
        "program": Box(
            110, 140, ("your program", "instance(durable=...)", "or pyrite submit"), width=170
        ),
        "leader": Box(370, 60, ("coordinator", "leads")),
        "standby": Box(680, 60, ("coordinator", "stands by")),
        "store": Box(
            370, 190, ("store", "jobs, offers, peers", "SQLite or ZooKeeper"), "disk", 170
        ),
        "queues": Box(
            370, 320, ("queues", "batches, positions, state", "SQLite or NATS"), "disk", 190
        ),
        "peer 1": Box(650, 190, ("peer",), width=100),
        "peer 2": Box(650, 255, ("peer",), width=100),
        "peer 3": Box(650, 320, ("peer",), width=100),
        "results": Box(
            880, 255, ("results", "files, tables,", "named maps and lists"), "disk", 170
        ),
    }
    arrows = [
        Arrow("program", "store", "submits"),
        Arrow("program", "queues", "input"),
        Arrow("leader", "store", "offers, answers", both=True),
        Arrow("standby", "store", "takes over", dashed=True),
        Arrow("store", "peer 1", both=True),
        Arrow("store", "peer 2", both=True),
        Arrow("queues", "peer 2", both=True),
        Arrow("queues", "peer 3", "batches", both=True),
        Arrow("peer 2", "results", "at the end"),
    ]
    return picture(990, 390, boxes, arrows)


def modes() -> str:
    ways = [
        ("light job", "in this process", "0.1 ms to start"),
        ("light job on members", "N processes or hosts", "a few ms"),
        ("normal job", "Spark", "any size of data"),
        ("durable job", "peers and queues", "survives any crash"),
    ]
    boxes = {}
    for i, lines in enumerate(ways):
        boxes[lines[0]] = Box(580, 52 + 92 * i, lines, width=200)
    boxes["pipeline"] = Box(110, 190, ("pipeline", "typed steps"))
    boxes["dag"] = Box(330, 190, ("DAG", "plain data"))
    boxes["result"] = Box(850, 190, ("result", "the same for all"), "disk")
    arrows = [Arrow("pipeline", "dag", "compiles"), *(Arrow("dag", way[0]) for way in ways)]
    arrows += [Arrow(way[0], "result") for way in ways]
    return picture(950, 380, boxes, arrows)


def layers() -> list[list[str]]:
    """The rooms from top to bottom, as the import rules have them. What is in one row does not
    import each other."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    [rows] = [c["layers"] for c in contracts if c["name"] == "Arrows point one way"]
    return [row.split(" | ") for row in rows]


NOTES = {
    "cli": "commands",
    "ui": "the page",
    "names": "what `import pyrite` gives",
    "workload": "DAGs of jobs",
    "pipeline": "makes DAGs",
    "instances": "what users open",
    "cluster": "beyond this process",
    "exchange": "what these three share",
    "engine": "runs the processors",
    "telemetry": "metrics, traces, lineage",
    "watching": "views of a run",
    "job": "executions; maps and lists",
    "processors": "ready-made processors",
    "columns": "batches of rows",
    "suppliers": "make processors",
    "processor": "what a processor is",
    "dag": "the model: plain data",
    "bad_records": "items that fail",
}
"""What a row of rooms is for, by a room in it."""


def rooms() -> str:
    boxes, y, width = {}, 38.0, 1040.0
    frames = []
    for row in layers():
        widths = [max(60, 7.6 * len(name) + 20) for name in row]
        x = (width - 230 - sum(widths) - 8 * (len(row) - 1)) / 2
        for name, wide in zip(row, widths):
            boxes[name] = Box(x + wide / 2, y, (name,), width=wide)
            x += wide + 8
        note = next((NOTES[name] for name in row if name in NOTES), "")
        frames.append(Frame(10, y - 22, width - 20, 44))
        boxes[f"note {y}"] = Box(width - 120, y + 1, (note,), "note", 200)
        y += 48
    return picture(width, y - 10, boxes, frames=frames)


DRAWN = {
    "word-count.svg": word_count,
    "edges.svg": edges,
    "stages.svg": stages,
    "members.svg": members,
    "durable.svg": durable,
    "modes.svg": modes,
    "rooms.svg": rooms,
}

if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for name, draw in DRAWN.items():
        (PICTURES / name).write_text(draw())
