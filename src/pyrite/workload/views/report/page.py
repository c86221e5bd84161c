"""The page of a report, made from its facts. Everything that comes from jobs is escaped."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from html import escape
from importlib.resources import files

from pyrite.workload.scheduling.states import JobState
from pyrite.workload.views.documents import killed_sentence
from pyrite.workload.views.report.facts import Facts
from pyrite.workload.views.report.graph import graph
from pyrite.workload.views.report.jobs_table import failures_section, jobs_table, state_badge
from pyrite.workload.views.report.timechart import chart, seconds

_SAYS_NO_NETWORK = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)


def page(facts: Facts) -> str:
    """The HTML document."""
    counts = Counter(row["state"] for row in facts.rows)
    failed = sum(counts[state] for state in JobState if state.is_failure)
    title = escape(facts.store.name)
    states = {row["job"]: row["state"] for row in facts.rows}
    sections = [
        _summary(facts, counts),
        _section("failures", "Failures", *failures_section(facts.failures, failed)),
        _section("times", "Time", *chart(facts.rows, facts.end)),
        _section("graph", "Graph", *graph(states, facts.edges)),
        _section("jobs", "Jobs", *jobs_table(facts.rows, facts.failures), before=_filters(counts)),
    ]
    body = "\n".join(sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_SAYS_NO_NETWORK}">
<title>{title}: {_phrase(facts)}</title>
<style>
{_part("style.css")}</style>
</head>
<body>
<main>
{body}
</main>
<script>
{_part("script.js")}</script>
</body>
</html>
"""


def _part(name: str) -> str:
    return (files("pyrite.workload.views.report") / name).read_text(encoding="utf-8")


def _section(id: str, heading: str, content: str, note: str, before: str = "") -> str:
    """A section, or nothing if there is neither content nor a note."""
    if not content and not note:
        return ""
    notes = f'<p class="quiet">{escape(note)}</p>' if note else ""
    inner = f"{before}<div class='scroll'>{content}</div>" if content else ""
    return f'<section id="{id}"><h2>{heading}</h2>\n{notes}\n{inner}\n</section>'


def _phrase(facts: Facts) -> str:
    if facts.is_running:
        return "running"
    has_failures = any(not row["state"].has_result for row in facts.rows)
    return "ended with failures" if facts.phase == "ended" and has_failures else facts.phase


def _summary(facts: Facts, counts: Counter[JobState]) -> str:
    total = max(1, len(facts.rows))
    shares = "".join(
        f'<i class="s-{state}" style="flex-grow:{counts[state]}" '
        f'title="{counts[state]:,} {state}"></i>'
        for state in JobState
        if counts[state]
    )
    legend = "".join(
        f"<span>{state_badge(state)} {counts[state]:,}</span>"
        for state in JobState
        if counts[state]
    )
    ended = sum(counts[state] for state in JobState if state.has_ended)
    facts_shown = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in _numbers(facts)
    )
    advice = "".join(f'<p class="advice">{line}</p>' for line in _advice(facts))
    percent = f"{ended / total:.0%}" if facts.is_running else ""
    return f"""<header>
<p class="quiet">{escape(str(facts.store.parent))}/</p>
<h1>{escape(facts.store.name)} <span class="phase {_look(facts, counts)}">{_phrase(facts)}
{percent}</span></h1>
<div class="shares">{shares}</div>
<p class="legend">{legend}</p>
<dl>{facts_shown}</dl>
{advice}
</header>"""


def _look(facts: Facts, counts: Counter[JobState]) -> str:
    if facts.is_running:
        return "s-RUNNING"
    is_good = facts.phase == "ended" and all(state.has_result for state in counts)
    return "s-DONE" if is_good else "s-FAILED"


def _numbers(facts: Facts) -> list[tuple[str, str]]:
    status = facts.status
    starts = [row["started"] for row in facts.rows if row["started"] is not None]
    busy = sum(
        (row["ended"] or facts.end) - row["started"]
        for row in facts.rows
        if row["started"] is not None
    )
    length = facts.end - min(starts) if starts else 0.0
    found = [
        ("jobs", f"{len(facts.rows):,}"),
        ("started", _moment(status.started)),
        ("first start to last end", seconds(length)),
        ("critical path", seconds(facts.critical_path)),
        ("time of all jobs", seconds(busy)),
    ]
    workers, kind = status.options.get("workers"), status.options.get("kind")
    if workers:
        found.append(("workers", f"{workers} {kind or ''}"))
    if facts.is_running:
        found.append(("as of", _moment(facts.now)))
    return found


def _advice(facts: Facts) -> list[str]:
    """What went wrong with the run itself, and how to go on, as HTML."""
    lines = []
    if facts.status.problem:
        lines.append(escape(facts.status.problem))
    if facts.phase == "killed":
        sentence = killed_sentence(facts.status.master.pid)
        lines.append(escape(f"{sentence[0].upper()}{sentence[1:]}."))
    if facts.phase in ("killed", "broken", "cancelled"):
        command = f"pyrite workload resume {shlex.quote(str(facts.store))}"
        lines.append(f"To continue, run: <code>{escape(command)}</code>")
    return lines


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at))


def _filters(counts: Counter[JobState]) -> str:
    """The field and the buttons that filter the table. Without JavaScript, they are not there."""
    buttons = "".join(
        f'<button type="button" data-state="{state}" aria-pressed="false">{state_badge(state)} '
        f"{counts[state]:,}</button>"
        for state in JobState
        if counts[state]
    )
    return (
        '<div class="filters" hidden><input type="search" placeholder="filter by id or error" '
        f'aria-label="filter by id or error">{buttons}'
        '<span class="quiet" id="matches"></span></div>'
    )
