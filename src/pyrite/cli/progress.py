"""Runs a job for a command: shows its progress if it takes more than a second, and its metrics when
it has ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from pyrite.cli.errors import end_at_next_interrupt, say
from pyrite.functions import shorten
from pyrite.instances import Instance, instance
from pyrite.job import Execution, Job, JobStatus
from pyrite.watching.recorders import open_recorder

QUIET_SECONDS = 1.0
CANCEL_SECONDS = 10.0  # a function that does not return cannot be stopped
REFRESH_SECONDS = 0.25
PATIENCE_SECONDS = 15.0


@contextmanager
def opened(**options: Any) -> Iterator[Instance]:
    """An instance for one command, whose runs are recorded. After Ctrl-C it is not closed, because
    closing would wait for a Spark session that is still starting. The process ends then, and Spark
    ends with it."""
    with open_recorder():
        pyr = instance(**options)
        try:
            yield pyr
        except Exception:
            pyr.close()
            raise
        else:
            pyr.close()


def run_to_end(job: Job, console: Console) -> Execution:
    """Executes the job and waits for it, with a progress display. Raises the error of the job, if
    it fails. On Ctrl-C, cancels the job and raises KeyboardInterrupt."""
    started = time.perf_counter()
    execution = job.execute()
    try:
        _wait(execution, console, started)
    except KeyboardInterrupt:
        end_at_next_interrupt()
        execution.cancel()
        wait([execution], timeout=CANCEL_SECONDS)
        raise
    return execution


def show_outcome(pyr: Instance, execution: Execution, seconds: float, console: Console) -> None:
    """Prints the metrics of each vertex, the duration, and the contents of the named maps and
    lists."""
    console.print(metrics_table(execution))
    console.print(f"[green]completed[/] in {duration(seconds)}{where_time_went(execution)}")
    for kind, name, items in pyr.collections():
        console.print(
            f"{kind} '{name}': {len(items)} items  {shorten(items[:5], console.width - 20)}",
            markup=False,
            highlight=False,
        )


def where_time_went(execution: Execution) -> str:
    parts = [f"{what} {duration(seconds)}" for what, seconds in execution.timings().items()]
    return f": {', '.join(parts)}" if parts else ""


def metrics_table(execution: Execution) -> Table:
    """The numbers of items that each vertex has received and emitted so far."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("vertex")
    for name in ("received", "emitted", "waiting", "busy"):
        table.add_column(name, justify="right")
    for vertex, numbers in execution.metrics().items():
        table.add_row(vertex, *_cells(numbers))
    return table


def _cells(numbers: dict[str, Any]) -> tuple[str, str, str, str]:
    return (
        f"{numbers['received']:,}",
        f"{numbers['emitted']:,}",
        f"{numbers['queue_fill']:,}",
        duration(numbers["busy_seconds"])
        if numbers["busy_seconds"]
        else "-",  # on Spark it is known for the last stage only
    )


def _wait(execution: Execution, console: Console, started: float) -> None:
    try:
        return execution.result(QUIET_SECONDS)
    except TimeoutError:
        pass
    if not console.is_terminal:
        return _wait_in_log(execution)
    with Live(
        _progress_table(execution), console=console, transient=True, auto_refresh=False
    ) as live:
        while True:
            try:
                return execution.result(REFRESH_SECONDS)
            except TimeoutError:
                table = _progress_table(execution)
                table.caption = f"{_phase(execution)}, {duration(time.perf_counter() - started)}"
                live.update(table, refresh=True)


def _wait_in_log(execution: Execution) -> None:
    """Waits without a display, for output to a file or a pipe. Prints one line if Spark takes long
    to start."""
    try:
        return execution.result(PATIENCE_SECONDS)
    except TimeoutError:
        if execution.status is JobStatus.STARTING:
            say(f"{_phase(execution)}; press Ctrl-C to give up")
    return execution.result()


def _phase(execution: Execution) -> str:
    if execution.status is JobStatus.STARTING and not execution.job.is_light:
        return "waiting for Spark to start"
    return execution.status.value


def _progress_table(execution: Execution) -> Table:
    """The metrics of the vertices so far. A job on Spark has metrics only when it has ended; until
    then, the numbers of finished tasks of its stages."""
    stages = execution.progress()
    if not stages:
        return metrics_table(execution)
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("stage")
    table.add_column("tasks done", justify="right")
    for label, done, count in stages:
        table.add_row(label, f"{done} of {count}")
    return table


def duration(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"
