"""Jobs on Dask distributed, two workers. Only the child process of `peers` imports this."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from distributed import Client, LocalCluster, wait  # type: ignore[import-not-found,unused-ignore]

from benchmarks.burning import burn
from benchmarks.shapes import SHAPES, noop


def wide(jobs: int) -> float:
    return _run(jobs, "wide")


def chain(jobs: int) -> float:
    return _run(jobs, "chain")


def layered(jobs: int) -> float:
    return _run(jobs, "layered")


def burning(tasks: int) -> float:
    with _client() as client:
        client.gather(client.map(burn, range(2)))  # type: ignore[no-untyped-call,unused-ignore]
        started = perf_counter()
        client.gather(client.map(burn, range(2, tasks + 2)))  # type: ignore[no-untyped-call,unused-ignore]
        return perf_counter() - started


@contextmanager
def _client() -> Iterator[Any]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):  # type: ignore[no-untyped-call,unused-ignore]
        yield client


def _run(jobs: int, shape: str) -> float:
    upstream = SHAPES[shape]
    with _client() as client:
        client.submit(noop).result()  # type: ignore[no-untyped-call,unused-ignore]
        started = perf_counter()
        futures: list[Any] = []
        for job in range(jobs):
            futures.append(
                client.submit(noop, *[futures[above] for above in upstream(job)], key=f"job-{job}")
            )  # type: ignore[no-untyped-call,unused-ignore]
        wait(futures)  # type: ignore[no-untyped-call,unused-ignore]
        return perf_counter() - started
