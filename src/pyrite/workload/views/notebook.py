"""A run of a workload as HTML for a notebook: the graph of its jobs, and a table of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from pyrite.errors import PyriteError
from pyrite.functions import shorten_text
from pyrite.watching.notebook.frame import bar, framed, graph, heading, note, side_by_side, table
from pyrite.watching.words import duration
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.views.documents import phase_of

if TYPE_CHECKING:
    from pyrite.workload.run import Run

ROWS_SHOWN: Final = 50
MOST_DRAWN: Final = 2000
LONGEST_ERROR: Final = 200


def html_of(run: Run) -> str:
    """The run as it is now. A store that has another run by now is told as such."""
    try:
        return _html_of(run)
    except PyriteError as error:
        return framed(heading(f"Run in {run.store}"), note(str(error), kind="bad"))


def _html_of(run: Run) -> str:
    status, rows, counts = run.status, run.table(), run.counts()
    ended = sum(count for state, count in counts.items() if state.has_ended)
    words = ", ".join(f"{n} {s.value.lower()}" for s in JobState if (n := counts.get(s)))
    shown = _most_telling(rows)
    return framed(
        heading(
            f"Run in {run.store}",
            phase_of(run),
            [
                duration((status.ended or time.time()) - status.started),
                f"{ended:,} of {len(rows):,} jobs have ended: {words}",
            ],
            is_bad=bool(run.failed()),
        ),
        bar(ended, len(rows)),
        note(status.problem, kind="bad") if status.problem else "",
        side_by_side(
            graph(run.to_svg()) if len(rows) <= MOST_DRAWN else "",
            table(
                ("job", "state", "worker", "error", "attempt", "seconds"),
                [_cells(row) for row in shown],
                texts=4,
            ),
        ),
        note(f"and {len(rows) - len(shown):,} more jobs") if len(shown) < len(rows) else "",
    )


def _most_telling(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most ROWS_SHOWN rows, in their order: failed jobs, then those that run, then others."""

    def rank(number: int) -> tuple[bool, bool, int]:
        state: JobState = rows[number]["state"]
        return not state.is_failure, state is not JobState.RUNNING, number

    return [rows[n] for n in sorted(sorted(range(len(rows)), key=rank)[:ROWS_SHOWN])]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    seconds = row["seconds"]
    return (
        row["job"],
        row["state"].value,
        row["worker"] or "",
        shorten_text(row["error"] or "", LONGEST_ERROR),
        str(row["attempt"] or ""),
        "" if seconds is None else duration(seconds),
    )
