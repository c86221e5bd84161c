"""The table of the jobs in a report, and the outputs of those that failed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from pyrite.functions import shorten_text
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.views.report.facts import Failure, plain
from pyrite.workload.views.report.timechart import seconds

ROWS_MAX = 2000
ERROR_CHARACTERS = 500
ID_CHARACTERS = 300

_HEADERS = ("job", "state", "attempt", "worker", "start", "duration", "error")
_NUMBERS = frozenset(("attempt", "start", "duration"))


def jobs_table(rows: Sequence[dict[str, Any]], failures: Sequence[Failure]) -> tuple[str, str]:
    """The table as HTML, and a sentence about what it leaves out."""
    shown = chosen(rows)
    starts = [row["started"] for row in rows if row["started"] is not None]
    begin = min(starts, default=0.0)
    places = {failure.row["job"]: n for n, failure in enumerate(failures)}
    heads = "".join(
        f'<th{_number(name)}><button type="button">{name}</button></th>' for name in _HEADERS
    )
    body = "\n".join(_row(row, begin, places.get(row["job"])) for row in shown)
    left_out = (
        f"{len(shown):,} of {len(rows):,} jobs are shown: first those that are not done, then "
        "those that took longest. To see all, run: pyrite workload status STORE --all"
        if len(shown) < len(rows)
        else ""
    )
    table = f"<table><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return table, left_out


def chosen(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """All rows in the order of the workload or, if there are too many, the most important ones."""
    if len(rows) <= ROWS_MAX:
        return list(rows)

    def importance(row: dict[str, Any]) -> tuple[bool, bool, float]:
        state: JobState = row["state"]
        return not state.is_failure, state.has_result, -(row["seconds"] or 0.0)

    return sorted(rows, key=importance)[:ROWS_MAX]


def failures_section(failures: Sequence[Failure], count: int) -> tuple[str, str]:
    """The failed jobs with their tracebacks and outputs, and a sentence about what is left out."""
    left_out = (
        f"The outputs of {count - len(failures):,} other failed jobs are left out."
        if len(failures) < count
        else ""
    )
    return "\n".join(_failure(n, failure) for n, failure in enumerate(failures)), left_out


def state_badge(state: JobState) -> str:
    return f'<span class="badge"><i class="s-{state}"></i>{state}</span>'


def _number(name: str) -> str:
    return ' class="n"' if name in _NUMBERS else ""


def _row(row: dict[str, Any], begin: float, failure: int | None) -> str:
    id = escape(shorten_text(row["job"], ID_CHARACTERS))
    name = id if failure is None else f'<a href="#failure-{failure}">{id}</a>'
    start = "" if row["started"] is None else row["started"] - begin
    took = "" if row["seconds"] is None else row["seconds"]
    note = "" if row["selected"] else " <small>(not selected)</small>"
    cells = (
        f'<td class="id">{name}</td>',
        f"<td>{state_badge(row['state'])}{note}</td>",
        f'<td class="n">{row["attempt"] or ""}</td>',
        f"<td>{escape(row['worker'] or '')}</td>",
        _time(start),
        _time(took),
        f'<td class="error">{escape(_error(row))}</td>',
    )
    return f'<tr data-state="{row["state"]}">{"".join(cells)}</tr>'


def _time(value: float | str) -> str:
    if isinstance(value, str):
        return '<td class="n" data-v="-1"></td>'
    return f'<td class="n" data-v="{value:.6f}">{seconds(value)}</td>'


def _error(row: dict[str, Any]) -> str:
    return shorten_text(plain(row["error"] or ""), ERROR_CHARACTERS)


def _failure(n: int, failure: Failure) -> str:
    row = failure.row
    parts = [f'<p class="error">{escape(_error(row))}</p>']
    if failure.traceback:
        parts.append(f"<h4>Traceback</h4><pre>{escape(failure.traceback)}</pre>")
    if failure.log:
        before = failure.bytes_before
        note = f" <small>(the first {before:,} bytes are left out)</small>" if before else ""
        parts.append(f"<h4>Output{note}</h4><pre>{escape(failure.log)}</pre>")
    else:
        parts.append('<p class="quiet">It wrote no output.</p>')
    is_open = " open" if n < 3 else ""
    summary = f"<span>{escape(shorten_text(row['job'], ID_CHARACTERS))}</span>"
    return (
        f'<details id="failure-{n}"{is_open}><summary>{summary} {state_badge(row["state"])}'
        f"<small>{escape(_attempts(row))}</small></summary>\n{''.join(parts)}</details>"
    )


def _attempts(row: dict[str, Any]) -> str:
    took = "" if row["seconds"] is None else f" after {seconds(row['seconds'])}"
    return f"attempt {row['attempt']}{took}" if row["attempt"] else ""
