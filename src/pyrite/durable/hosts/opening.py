"""Opens the queues of a folder or of a deployment."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from pyrite.durable.queues.queues import Queues
from pyrite.durable.store.opening import deployment_at


def open_queues(place: str) -> Queues:
    """A new connection to the queues of a folder, or of a deployment at a URL."""
    deployment = deployment_at(place)
    queues: Queues
    if deployment is None:
        queues = import_module("pyrite.durable.queues.sqlite").SqliteQueues(Path(place))
    else:
        queues = import_module("pyrite.durable.queues.nats").NatsQueues(deployment.nats)
    return queues


def closes_queues(place: str) -> Callable[[str], None]:
    """Deletes the queues of a job, with a connection of its own each time: it happens seldom, and
    the servers may have been started anew in between."""

    def close(job: str) -> None:
        queues = open_queues(place)
        try:
            queues.close_job(job)
        finally:
            queues.close()

    return close
