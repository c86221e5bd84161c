"""What it costs that jobs can be watched while they run: the same jobs with and without live
metrics.

Nothing waits for metrics, so they cost CPU time and nothing else. The sides differ by a percent or
so, and durations vary by more; so CPU times of the Python processes are compared.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rich.console import Console

import pyrite
from benchmarks.chain import ITEMS, READY_MADE, ready_made_dag
from benchmarks.on_spark import CONF, word_count, write_words
from benchmarks.ratios import NoMoreThan, Side, WrongOutcome, compare, cpu_seconds
from benchmarks.work import plain_loop
from pyrite import DAG, Execution, between
from pyrite import processors as p
from pyrite.engine.heavy_keys import HeavyKeys
from pyrite.spark.live.hearing import Hearing
from pyrite.system.reaper import children_of

WORDS = 8_000_000
NUMBERS = 1_000_000
ROUNDS = 8
LOOKS_PER_SECOND = 2
"""The page, the terminal and the journal look once a second each, at most."""


def run(console: Console) -> None:
    console.print(compare("seeing: the light chain", _chain()))
    console.print(compare("seeing: a light job with a partitioned edge", _partitioned()))
    with (
        tempfile.TemporaryDirectory() as folder,
        pyrite.instance(spark_master="local[2, 4]", spark_conf=CONF) as pyr,
    ):
        write_words(Path(folder), WORDS)
        console.print(
            compare("seeing: words on Spark", _words(pyr, f"{folder}/*.txt"), item="word")
        )


@contextmanager
def watched(execution: Execution) -> Iterator[None]:
    """Somebody looks at the execution while it runs."""
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(1 / LOOKS_PER_SECOND):
            execution.metrics()
            execution.members()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def unwatched(execution: Execution) -> Iterator[None]:
    yield


def _chain() -> list[Side]:
    expected, dag = plain_loop(ITEMS), ready_made_dag()

    def job(watching: Callable[[Execution], Any]) -> Callable[[], float]:
        def timed() -> float:
            with pyrite.instance() as pyr:

                def once() -> None:
                    execution = pyr.new_light_job(dag).execute()
                    with watching(execution):
                        execution.result()

                taken = cpu_seconds(once)
                if dict(pyr.map("counts")) != expected:
                    raise WrongOutcome("the DAG gave other counts than the plain loop")
                return taken

        return timed

    aim = NoMoreThan(times=1.03, than=READY_MADE)
    return [
        Side(name=READY_MADE, items=ITEMS, run=job(unwatched), rounds=ROUNDS),
        Side(name="watched", items=ITEMS, run=job(watched), rounds=ROUNDS, aim=aim),
    ]


def _partitioned() -> list[Side]:
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(NUMBERS)), local_parallelism=1)
    group = dag.vertex(
        "group", p.group_and_accumulate(lambda n: n % 1000, 0, lambda total, n: total + n)
    )
    by_key = between(source, group).partitioned(key=lambda n: n % 1000)
    dag.edge(by_key).edge(between(group, dag.vertex("sink", p.write_map("sums"))))

    def once() -> float:
        with pyrite.instance(cooperative_threads=2) as pyr:
            taken = cpu_seconds(lambda: pyr.new_light_job(dag).execute().result())
            if sum(value for _, value in pyr.map("sums").items()) != sum(range(NUMBERS)):
                raise WrongOutcome("numbers were lost")
            return taken

    def without_sketch() -> float:
        with patch.object(HeavyKeys, "see", lambda self, items, count: None):
            return once()

    aim = NoMoreThan(times=1.03, than="no sketch of keys")
    return [
        Side(name="no sketch of keys", items=NUMBERS, run=without_sketch, rounds=ROUNDS),
        Side(name="with the sketch", items=NUMBERS, run=once, rounds=ROUNDS, aim=aim),
    ]


def _words(pyr: pyrite.Instance, pattern: str) -> list[Side]:
    def once(watching: Callable[[Execution], Any]) -> None:
        pyr.map("counts").clear()
        execution = pyr.new_job(word_count(pattern)).execute()
        with watching(execution):
            execution.result()
        if sum(count for _, count in pyr.map("counts").items()) != WORDS:
            raise WrongOutcome("words were lost")

    def silent() -> float:
        with patch.object(Hearing, "open", lambda self, spark, members: None):
            return cpu_of_python(lambda: once(unwatched))

    aim = NoMoreThan(times=1.02, than="tasks tell nothing")
    return [
        Side(name="tasks tell nothing", items=WORDS, run=silent, rounds=ROUNDS),
        Side(
            name="tasks tell, and somebody looks",
            items=WORDS,
            run=lambda: cpu_of_python(lambda: once(watched)),
            rounds=ROUNDS,
            aim=aim,
        ),
    ]


def cpu_of_python(action: Callable[[], object]) -> float:
    """The CPU time of a call, in this process and in the Python workers of its Spark session."""
    before = _cpu_of_workers()
    return cpu_seconds(action) + _cpu_of_workers() - before


def _cpu_of_workers() -> float:
    found = children_of(os.getpid())
    for each in found:  # grows while it is read
        found.extend(children_of(each))
    return sum(map(_cpu_of, found))


def _cpu_of(pid: int) -> float:
    """Of a Python worker, with what its children have used that have ended; 0 of others."""
    try:
        if b"pyspark" not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[2]:
            return 0.0
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, IndexError):  # it has just ended, or has fewer arguments
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
