"""Jobs on Ray, two workers. Only the child process of `peers` imports this."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import ray  # type: ignore[import-not-found,unused-ignore]

from benchmarks.burning import burn
from benchmarks.shapes import SHAPES, noop


def wide(jobs: int) -> float:
    return _run(jobs, "wide")


def chain(jobs: int) -> float:
    return _run(jobs, "chain")


def layered(jobs: int) -> float:
    return _run(jobs, "layered")


def burning(tasks: int) -> float:
    with _workers():
        remote = ray.remote(burn)
        ray.get([remote.remote(seed) for seed in range(100)])
        started = perf_counter()
        ray.get([remote.remote(seed) for seed in range(tasks)])
        return perf_counter() - started


@contextmanager
def _workers() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()


def _run(jobs: int, shape: str) -> float:
    upstream = SHAPES[shape]
    with _workers():
        remote = ray.remote(noop)
        ray.get([remote.remote() for _ in range(100)])
        started = perf_counter()
        futures: list[Any] = []
        for job in range(jobs):
            futures.append(remote.remote(*[futures[above] for above in upstream(job)]))
        ray.get(futures)
        return perf_counter() - started
