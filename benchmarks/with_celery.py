"""Counting with Celery, a Redis as its broker and two worker processes. Only the child process of
`peers` imports this. The URL of the Redis is in CELERY_REDIS.

A batch is a task that maps its numbers and counts them by key. Celery has no partitioned edges, so
the caller adds the counts of the batches up, which is less work than what the others do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from time import perf_counter

from celery import Celery, group  # type: ignore[import-not-found,import-untyped,unused-ignore]

from benchmarks.counting import BATCH, counts, pair

URL = os.environ.get("CELERY_REDIS", "redis://127.0.0.1:6379/0")
app = Celery("with_celery", broker=URL, backend=URL)
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=4)


@app.task(name="batch")  # type: ignore[untyped-decorator,unused-ignore]
def batch(start: int, stop: int) -> list[tuple[int, int]]:
    counted: dict[int, int] = {}
    for number in range(start, stop):
        key, one = pair(number)
        counted[key] = counted.get(key, 0) + one
    return list(counted.items())


def run(items: int) -> float:
    taken = _run(items)
    # Celery's connection to Redis fails when Python ends, so the answer is given here.
    print(json.dumps({"seconds": taken, "outcome": taken}), flush=True)
    os._exit(0)


def _run(items: int) -> float:
    worker = subprocess.Popen(
        [
            *(sys.executable, "-m", "celery", "-A", "benchmarks.with_celery", "worker"),
            *("--concurrency", "2", "--loglevel", "ERROR", "--without-gossip", "--without-mingle"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        batch.delay(0, 1).get(timeout=60)
        started = perf_counter()
        asked = group(batch.s(at, min(at + BATCH, items)) for at in range(0, items, BATCH))()
        total: Counter[int] = Counter()
        for counted in asked.get(timeout=250):
            total.update(dict(counted))
        taken = perf_counter() - started
        if dict(total) != counts(items):
            raise AssertionError("its counts are wrong")
        return taken
    finally:
        worker.terminate()
        worker.wait()
