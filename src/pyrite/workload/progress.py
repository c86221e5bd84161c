"""Waits for a run and shows its progress in a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from pyrite.workload.scheduling.states import JobState

if TYPE_CHECKING:
    from rich.table import Table

    from pyrite.workload.run import Run

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


def wait_with_progress(run: Run, timeout: float | None, *, progress: bool | None) -> bool:
    """Waits for the run. Returns whether it has ended before the timeout."""
    give_up = None if timeout is None else time.monotonic() + timeout
    shows = sys.stderr is not None and sys.stderr.isatty() if progress is None else progress
    if not shows:
        return run.wait_for_master(timeout)
    if run.wait_for_master(_shorter(QUIET_SECONDS, give_up)):
        return True
    from rich.console import Console
    from rich.live import Live

    started = run.status.started
    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:
        while give_up is None or time.monotonic() < give_up:
            live.update(_picture(run, time.time() - started), refresh=True)
            if run.wait_for_master(_shorter(REFRESH_SECONDS, give_up)):
                return True
    return False


def _shorter(seconds: float, give_up: float | None) -> float:
    return seconds if give_up is None else max(0.0, min(seconds, give_up - time.monotonic()))


def _picture(run: Run, seconds: float) -> Table:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    counts = run.counts()
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
