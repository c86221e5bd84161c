"""A coordinator as a program."""

from __future__ import annotations

from functools import partial

from pyrite.durable.coordinator.program import Coordinator
from pyrite.durable.hosts.places import open_queues
from pyrite.durable.store.opening import open_store


def coordinate(place: str) -> None:
    """Stands by or leads, until the process ends."""
    Coordinator(partial(open_store, place), partial(close_queues, place)).run()


def close_queues(place: str, job: str) -> None:
    queues = open_queues(place)
    try:
        queues.close_job(job)
    finally:
        queues.close()
