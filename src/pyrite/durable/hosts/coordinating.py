"""A coordinator as a program."""

from __future__ import annotations

from functools import partial

from pyrite.durable.coordinator.program import Coordinator
from pyrite.durable.hosts.places import closes_queues, lists_queues
from pyrite.durable.store.opening import open_store


def coordinator_at(place: str) -> Coordinator:
    """It stands by or leads from its `run` on, until its `stop`."""
    return Coordinator(partial(open_store, place), closes_queues(place), lists_queues(place))
