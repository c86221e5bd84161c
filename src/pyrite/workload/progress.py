"""Waits for a run and shows its progress in a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyrite.workload.scheduling.states import JobState

if TYPE_CHECKING:
    from rich.table import Table

QUIET_SECONDS = 1.0
REFRESH_SECONDS = 0.25

STYLES = {
    JobState.DONE: "green",
    JobState.SKIPPED: "green",
    JobState.RUNNING: "yellow",
    JobState.FAILED: "red",
    JobState.CRASHED: "red",
    JobState.TIMEOUT: "red",
    JobState.BLOCKED: "magenta",
}


Counts = Callable[[], Mapping[JobState, int]]


def wait_with_progress(
    wait: Callable[[float | None], bool],
    counts: Counts,
    *,
    started: float,
    timeout: float | None,
    progress: bool | None,
) -> bool:
    """Waits for a run by `wait`, which returns whether the run has ended after some seconds.
    Returns whether it has ended before the timeout."""
    give_up = None if timeout is None else time.monotonic() + timeout
    shows = sys.stderr is not None and sys.stderr.isatty() if progress is None else progress
    if not shows:
        return wait(timeout)
    if wait(_shorter(QUIET_SECONDS, give_up)):
        return True
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:
        while give_up is None or time.monotonic() < give_up:
            live.update(_picture(counts(), time.time() - started), refresh=True)
            if wait(_shorter(REFRESH_SECONDS, give_up)):
                return True
    return False


def progress_line(counts: Mapping[JobState, int], seconds: float) -> str:
    """
    >>> progress_line({JobState.DONE: 2, JobState.RUNNING: 1}, 30.0)
    '2 of 3 jobs have ended after 30 s: 1 running, 2 done'
    """
    total = sum(counts.values())
    ended = sum(count for state, count in counts.items() if state.has_ended)
    words = ", ".join(f"{n} {s.value.lower()}" for s in JobState if (n := counts.get(s)))
    return f"{ended} of {total} jobs have ended after {seconds:.0f} s: {words}"


def _shorter(seconds: float, give_up: float | None) -> float:
    return seconds if give_up is None else max(0.0, min(seconds, give_up - time.monotonic()))


def _picture(counts: Mapping[JobState, int], seconds: float) -> Table:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    total = sum(counts.values())
    ended = sum(count for state, count in counts.items() if state.has_ended)
    table = Table.grid(padding=(0, 1))
    words = "  ".join(
        f"[{STYLES.get(s, 'dim')}]{n} {s.value.lower()}[/]"
        for s in JobState
        if (n := counts.get(s))
    )
    table.add_row(
        ProgressBar(total=max(total, 1), completed=ended, width=30),
        f"{ended} of {total} jobs  {seconds:.0f} s  {words}",
    )
    return table
