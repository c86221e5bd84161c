"""Jobs that run until a test lets them end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from pyrite import DAG, between, processors


class Gate:
    """The source of its DAG emits one item, and the next ones once it is open."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def open(self) -> None:
        self._event.set()

    def dag(self) -> DAG:
        dag = DAG()
        source = dag.vertex("source", processors.read_items(_AfterEvent(self._event)))
        return dag.edge(between(source, dag.vertex("sink", processors.noop())))


class _AfterEvent:
    """An item, and then more until the event is set: the source never blocks a thread."""

    def __init__(self, event: threading.Event) -> None:
        self._event = event

    def __iter__(self) -> Iterator[Any]:
        yield 1
        while not self._event.wait(0.0005):
            yield 1


def failing(message: str = "broken", *, name: str = "step") -> DAG:
    def fail(item: int) -> int:
        raise ValueError(message)

    dag = DAG()
    source = dag.vertex("source", processors.read_items([1, 2, 3]))
    step = dag.vertex(name, processors.map(fail))
    return dag.edge(between(source, step))
