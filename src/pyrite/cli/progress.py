"""Runs a job for a command: shows its progress if it takes more than a second, and its metrics when
it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from pyrite.cli.errors import end_at_next_interrupt
from pyrite.cli.showing.answers import Answer, error_words
from pyrite.cli.showing.documents import execution_document
from pyrite.cli.showing.vertices import vertices_table
from pyrite.cli.showing.watch import Watch
from pyrite.functions import shorten
from pyrite.instances import Instance, instance
from pyrite.job import Execution, Job
from pyrite.watching.observing import view_of
from pyrite.watching.rates import Rates
from pyrite.watching.recorders import open_recorder
from pyrite.watching.words import duration

CANCEL_SECONDS = 10.0  # a function that does not return cannot be stopped


@contextmanager
def opened(**options: Any) -> Iterator[Instance]:
    """An instance for one command, whose runs are recorded, also short ones: a person has started
    each of them, and will look for it. After Ctrl-C it is not closed, because
    closing would wait for a Spark session that is still starting. The process ends then, and Spark
    ends with it."""
    with open_recorder() as recording:
        recording.recorder.keeps_short = True
        pyr = instance(**options)
        try:
            yield pyr
        except Exception:
            pyr.close()
            raise
        else:
            pyr.close()


def run_to_end(job: Job, answer: Answer) -> Execution:
    """Executes the job and waits for it, with a progress display. If the job fails, gives its
    document and raises its error. On Ctrl-C, cancels the job and raises KeyboardInterrupt."""
    execution = job.execute()
    try:
        with Watch(execution, quiet=answer.is_quiet) as watch:
            watch.wait()
    except KeyboardInterrupt as error:
        end_at_next_interrupt()
        execution.cancel()
        wait([execution], timeout=CANCEL_SECONDS)
        answer.give(execution_document(execution, error=error_words(error)))
        raise
    except Exception as error:
        answer.give(execution_document(execution, error=error_words(error)))
        raise
    return execution


def show_outcome(pyr: Instance, execution: Execution, answer: Answer) -> None:
    """Prints the metrics of each vertex, the duration, and the contents of the named maps and
    lists."""
    console = answer.console
    show_metrics(execution, console)
    console.print(f"[green]completed[/] in {seconds_of(execution)}{where_time_went(execution)}")
    collections = []
    for kind, name, items in pyr.collections():
        collections.append({"kind": kind, "name": name, "items": len(items)})
        console.print(
            f"{kind} '{name}': {len(items)} items  {shorten(items[:5], console.width - 20)}",
            markup=False,
            highlight=False,
        )
    answer.give(execution_document(execution, collections=collections))


def seconds_of(execution: Execution) -> str:
    """How long it ran."""
    return duration((execution.ended or execution.submitted) - execution.submitted)


def where_time_went(execution: Execution) -> str:
    parts = [f"{what} {duration(seconds)}" for what, seconds in execution.timings().items()]
    return f": {', '.join(parts)}" if parts else ""


def show_metrics(execution: Execution, console: Console) -> None:
    """The items that each vertex has received and emitted, how fast, and the time it was busy."""
    view = Rates().added_to(view_of(execution))
    console.print(vertices_table(view.vertices, console.width))
