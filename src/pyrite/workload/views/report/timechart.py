"""The time chart of a report (a Gantt chart): a row per worker, a bar per job, as an SVG image
whose width follows the window.

Pure code in three steps: `axis` maps times to the width of the chart and cuts out the time in which
nothing ran; `lanes` gives each worker a row; `bars` joins jobs that are too short to be seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple

from pyrite.functions import shorten_text
from pyrite.workload.scheduling.states import JobState

LANES_MAX = 64
BARS_MAX = 4000
BAR_PIXELS = 18
LANE_PIXELS = 22
AXIS_PIXELS = 22
TICKS_MAX = 6
SHARE_OF_A_GAP = 0.1  # a longer time in which nothing ran, as a share of the rest, is cut out
GAP_SECONDS = 1.0  # and is longer than this
GAPS_MAX = 20
WIDTH_OF_A_GAP = 0.02
NAMES_SHOWN = 5


class Bar(NamedTuple):
    """One job, or several short ones of the same state, of one worker. Times are in seconds."""

    start: float
    end: float
    state: JobState
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """`spans` are the times in which jobs ran. A time between two of them is a gap, drawn with a
    fixed width."""

    spans: Sequence[tuple[float, float]]
    starts: Sequence[float]  # the place of each span on the axis, from 0 to 1
    scale: float  # the width of a second

    def place(self, time: float) -> float:
        """Where a time is, from 0 to 1.

        >>> places = axis([(0, 10), (1000, 1010)])
        >>> [round(places.place(time), 2) for time in (0, 10, 1000, 1005, 1010)]
        [0.0, 0.49, 0.51, 0.76, 1.0]
        """
        n = max(0, bisect_right(self.spans, (time, float("inf"))) - 1)
        start, end = self.spans[n]
        return self.starts[n] + self.scale * (min(max(time, start), end) - start)

    @property
    def gaps(self) -> list[tuple[float, float]]:
        return [(before[1], after[0]) for before, after in pairwise(self.spans)]


def axis(intervals: Iterable[tuple[float, float]]) -> Axis:
    """The axis for these intervals, of which there is at least one."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    longest = max(GAP_SECONDS, SHARE_OF_A_GAP * sum(end - start for start, end in merged))
    gaps = sorted((after[0] - before[1] for before, after in pairwise(merged)), reverse=True)
    if len(gaps) > GAPS_MAX:
        longest = max(longest, gaps[GAPS_MAX])
    spans: list[tuple[float, float]] = []
    for start, end in merged:
        if spans and start - spans[-1][1] <= longest:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    width_of_a_gap = min(WIDTH_OF_A_GAP, 0.5 / len(spans))
    busy = max(1e-3, sum(end - start for start, end in spans))
    scale = (1 - width_of_a_gap * (len(spans) - 1)) / busy
    starts, place = [], 0.0
    for start, end in spans:
        starts.append(place)
        place += scale * (end - start) + width_of_a_gap
    return Axis(spans, starts, scale)


def lanes(bars: Iterable[tuple[str, Bar]]) -> list[tuple[list[str], list[Bar]]]:
    """The rows of the chart: the names of workers, and the bars in the order of their starts. A
    worker that started after another one had ended shares its row.

    >>> def bar(start, end):
    ...     return Bar(start, end, JobState.DONE, ("a",))
    >>> [names for names, _ in lanes([("w1", bar(0, 1)), ("w2", bar(0, 2)), ("w3", bar(1, 2))])]
    [['w1', 'w3'], ['w2']]
    """
    by_worker: dict[str, list[Bar]] = {}
    for worker, bar in bars:
        by_worker.setdefault(worker, []).append(bar)
    found: list[tuple[list[str], list[Bar]]] = []
    ends: list[float] = []
    for worker, own in sorted(by_worker.items(), key=lambda item: min(item[1])):
        own.sort()
        free = next((n for n, end in enumerate(ends) if end <= own[0].start), None)
        if free is None:
            found.append(([], []))
            ends.append(0.0)
            free = len(ends) - 1
        found[free][0].append(worker)
        found[free][1].extend(own)
        ends[free] = max(bar.end for bar in own)
    return found


def joined(bars: Iterable[Bar], places: Axis, least: float) -> list[Bar]:
    """The bars of a row, with neighbours that are both narrower than `least` (of the width of the
    chart) and of one state joined."""
    found: list[Bar] = []
    for bar in bars:
        last = found[-1] if found else None
        if (
            last is not None
            and last.state is bar.state
            and places.place(bar.end) - places.place(last.start) < least
        ):
            found[-1] = last._replace(end=max(last.end, bar.end), jobs=last.jobs + bar.jobs)
        else:
            found.append(bar)
    return found


def chart(rows: Sequence[dict[str, Any]], end: float) -> tuple[str, str]:
    """The chart as HTML, and a sentence about what it leaves out. `end` is the end of the jobs that
    have none."""
    all_bars = [
        (
            row["worker"] or "?",
            Bar(
                row["started"],
                max(row["ended"] or end, row["started"]),
                row["state"],
                (row["job"],),
            ),
        )
        for row in rows
        if row["started"] is not None
    ]
    if not all_bars:
        return "", "No job has run yet, or all were skipped."
    places = axis((bar.start, bar.end) for _, bar in all_bars)
    found = lanes(all_bars)
    shown = found[:LANES_MAX]
    least = max(1 / 1000, len(shown) / BARS_MAX)
    left_out = (
        f"{len(found) - len(shown)} of {len(found)} rows are left out."
        if len(shown) < len(found)
        else ""
    )
    begin = places.spans[0][0]
    height = LANE_PIXELS * len(shown) + AXIS_PIXELS
    parts = [f'<svg class="chart" width="100%" height="{height}" role="img">']
    parts += _ticks(places, begin, height)
    for n, (_, bars) in enumerate(shown):
        for bar in joined(bars, places, least):
            parts.append(_bar(bar, places, begin, LANE_PIXELS * n + 2))
    labels = "".join(
        f'<div title="{escape(", ".join(names[:50]))}">{escape(_label(names))}</div>'
        for names, _ in shown
    )
    body = "\n".join([*parts, "</svg>"])
    return f'<div class="lanes"><div class="names">{labels}</div>{body}</div>', left_out


def _label(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} others"


def _bar(bar: Bar, places: Axis, begin: float, top: int) -> str:
    left, right = places.place(bar.start), places.place(bar.end)
    names = ", ".join(shorten_text(job, 100) for job in bar.jobs[:NAMES_SHOWN])
    others = len(bar.jobs) - NAMES_SHOWN
    count = f"{len(bar.jobs)} jobs, " if len(bar.jobs) > 1 else ""
    tip = (
        f"{names}{f' and {others} others' if others > 0 else ''}\n{count}{bar.state}, "
        f"{seconds(bar.end - bar.start)}, from {seconds(bar.start - begin)} on"
    )
    text = shorten_text(bar.jobs[0], 100) if len(bar.jobs) == 1 and right - left > 0.03 else ""
    label = f'<text x="4" y="13">{escape(text)}</text>' if text else ""
    return (
        f'<svg x="{left:.3%}" y="{top}" width="{max(right - left, 0.0005):.3%}" '
        f'height="{BAR_PIXELS}"><rect class="s-{bar.state}" width="100%" height="100%"/>'
        f"{label}<title>{escape(tip)}</title></svg>"
    )


def _ticks(places: Axis, begin: float, height: int) -> list[str]:
    """Lines with the time since the first start, and a mark where time is cut out."""
    parts = []
    bottom = height - AXIS_PIXELS
    for gap, after in zip(places.gaps, places.starts[1:]):
        left = places.place(gap[0])
        parts.append(
            f'<rect class="gap" x="{left:.3%}" width="{after - left:.3%}" y="0" '
            f'height="{bottom}"><title>nothing ran for {seconds(gap[1] - gap[0])}</title></rect>'
        )
    busy = sum(end - start for start, end in places.spans)
    step = nice_step(busy / TICKS_MAX)
    last = -1.0
    for start, end in places.spans:
        time = begin + step * -(-(start - begin) // step)
        while time <= end:
            place = places.place(time)
            if place - last >= 0.5 / TICKS_MAX:
                anchor = "start" if place < 0.02 else "end" if place > 0.95 else "middle"
                parts.append(
                    f'<line x1="{place:.3%}" x2="{place:.3%}" y1="0" y2="{bottom + 4}"/>'
                    f'<text class="tick" x="{place:.3%}" y="{height - 4}" '
                    f'text-anchor="{anchor}">{seconds(time - begin)}</text>'
                )
                last = place
            time += step
    return parts


def nice_step(least: float) -> float:
    """The shortest step of a scale that is not below `least`: 1, 2 or 5 times a power of ten, and
    from a minute on, whole minutes, hours and days.

    >>> [nice_step(least) for least in (0.03, 0.7, 12, 70, 4000)]
    [0.05, 1.0, 15, 120, 7200]
    """
    for step in (15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400):
        if 10 < least <= step:
            return step
    power = 1e-3
    while True:
        for factor in (1, 2, 5):
            if factor * power >= least:
                return round(factor * power, 6)
        power *= 10


def seconds(value: float) -> str:
    """A duration for people.

    >>> [seconds(value) for value in (0, 2e-4, 0.0123, 1.5, 75, 7262)]
    ['0 s', '200 µs', '12 ms', '1.5 s', '1 min 15 s', '2 h 1 min']
    """
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs" if value > 0 else "0 s"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.3g} s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    minutes = whole // 60
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")
