"""Reads ahead: threads make the next calls while the result of the last one is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

MOST_BYTES = 128 << 20
"""How much is read ahead at most, besides the next result."""


def ahead(
    calls: Iterable[tuple[int, Callable[[], T]]], *, threads: int, most_bytes: int = MOST_BYTES
) -> Generator[T, None, None]:
    """The results of calls, in their order. Each call comes with the bytes that its result may
    take. A call begins before its turn only if the results that nobody has taken stay below
    `most_bytes`; with less than two threads, none does.

    >>> list(ahead([(1, lambda: "a"), (1, lambda: "b")], threads=2))
    ['a', 'b']
    """
    if threads < 2:
        for _, call in calls:
            yield call()
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="pyrite-ahead") as pool:
        begun: deque[tuple[int, Future[T]]] = deque()
        weight = 0
        try:
            for size, call in calls:
                while begun and (len(begun) == threads or weight + size > most_bytes):
                    weight -= begun[0][0]
                    yield begun.popleft()[1].result()  # keeps no reference to it
                begun.append((size, pool.submit(call)))
                weight += size
            while begun:
                yield begun.popleft()[1].result()
        finally:
            for _, future in begun:
                future.cancel()
