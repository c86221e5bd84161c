"""The cost of a light job: its time against a round trip through a thread pool; and the threads,
the memory and the CPU time of an idle instance after thousands of jobs."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

import pyrite
from benchmarks.ratios import AtMost, Side, WrongOutcome, compare, seconds
from benchmarks.readings import Reading, report
from pyrite import processors as p

TRIPS = 500
ROUNDS = 20
POOL = "thread pool"
MB = 1 << 20


class Double(pyrite.AbstractProcessor):
    def try_process_0(self, item: int) -> None:
        self.emit(double(item))


def double(item: int) -> int:
    return 2 * item


def nothing() -> None:
    pass


def run(console: Console) -> None:
    # The readings come first, because memory that other work has left would hide a growth.
    with pyrite.instance() as pyr:
        console.print(report("10,000 light jobs, then idle", _readings(pyr)))
    # Waking a thread on another core takes longer, by an amount that varies from run to run, and
    # the system chooses the cores. On one core the ratio is stable; on all cores it is what users
    # see.
    with one_core() as pinned:
        if pinned:
            _compare(console, "light jobs, all threads on one core")
    _compare(console, "light jobs, threads on any core")


def _compare(console: Console, title: str) -> None:
    with pyrite.instance() as pyr, ThreadPoolExecutor(1) as pool:
        console.print(compare(title, _sides(pyr, pool), item="trip"))


@contextmanager
def one_core() -> Iterator[bool]:
    """Keeps this thread and the threads that it starts on one core. Yields False if the system
    cannot do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield False
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield True
    finally:
        os.sched_setaffinity(0, allowed)


def dag(middle: Any) -> pyrite.DAG:
    made = pyrite.DAG()
    numbers, doubled = (
        made.vertex("numbers", p.read_items(range(10))),
        made.vertex("doubled", middle),
    )
    results = made.vertex("results", p.write_list("results"))
    return made.edge(pyrite.between(numbers, doubled)).edge(pyrite.between(doubled, results))


def _sides(pyr: pyrite.Instance, pool: ThreadPoolExecutor) -> list[Side]:
    ready_made, custom = dag(p.map(double)), dag(Double)

    def light_jobs(make: Callable[[], pyrite.DAG]) -> Callable[[], float]:
        def run() -> None:
            for _ in range(TRIPS):
                pyr.new_light_job(make()).execute().result()

        def timed() -> float:
            results = pyr.list("results")
            results.clear()
            taken = seconds(run)
            if results != [double(number) for number in range(10)] * TRIPS:
                raise WrongOutcome("the light jobs appended wrong items")
            return taken

        return timed

    def pool_trips() -> float:
        return seconds(lambda: [pool.submit(nothing).result() for _ in range(TRIPS)])

    return [
        Side(name=POOL, items=TRIPS, run=pool_trips, rounds=ROUNDS),
        Side(
            name="light job",
            items=TRIPS,
            run=light_jobs(lambda: ready_made),
            rounds=ROUNDS,
            aim=AtMost(times=5, than=POOL),
        ),
        Side(
            name="light job, custom processor",
            items=TRIPS,
            run=light_jobs(lambda: custom),
            rounds=ROUNDS,
        ),
        Side(
            name="light job, new DAG each time",
            items=TRIPS,
            run=light_jobs(lambda: dag(p.map(double))),
            rounds=ROUNDS,
        ),
    ]


def _readings(pyr: pyrite.Instance) -> list[Reading]:
    job_dag = dag(p.map(double))

    def execute(jobs: int) -> None:
        for _ in range(jobs):
            pyr.new_light_job(job_dag).execute().result()
            pyr.list("results").clear()

    execute(2_000)
    threads, memory = threading.active_count(), resident_bytes()
    execute(8_000)
    more_threads, more_memory = threading.active_count(), resident_bytes()
    growth = None if memory is None or more_memory is None else (more_memory - memory) / MB

    used = time.process_time()
    time.sleep(2)
    used = time.process_time() - used

    return [
        Reading(
            name="threads added from the 2,000th to the 10,000th",
            amount=more_threads - threads,
            limit=0,
            unit="threads",
        ),
        Reading(
            name="memory added from the 2,000th to the 10,000th", amount=growth, limit=2, unit="MB"
        ),
        Reading(name="CPU time of an idle instance in 2 s", amount=used * 1e3, limit=5, unit="ms"),
    ]


def resident_bytes() -> int | None:
    """The resident memory of this process; None if it is not known on this system."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    return pages * resource.getpagesize()
