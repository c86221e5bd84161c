"""What is at a place, which is a folder or the URL of a deployment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyrite.durable.collections.collections import FolderCollections
from pyrite.durable.parts.completion import JobCollections
from pyrite.durable.queues.queues import Queues, QueuesError
from pyrite.durable.queues.sqlite import SqliteQueues
from pyrite.durable.store.opening import deployment_at
from pyrite.errors import PyriteError


def is_folder(place: str) -> bool:
    return deployment_at(place) is None


def open_queues(place: str) -> Queues:
    deployment = deployment_at(place)
    if deployment is None:
        return SqliteQueues(Path(place))
    from pyrite.durable.queues.nats import NatsQueues  # an extra: who uses it loads it

    if not deployment.nats:
        raise QueuesError(
            "the URL of a deployment must say where its NATS servers are; add"
            " ?nats=nats://host:4222 to it"
        )
    return NatsQueues([urls.split(",") for urls in deployment.nats], cluster=deployment.cluster)


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


def open_collections(place: str, url: str | None = None) -> JobCollections:
    """The named maps and lists: in the folder, or in the Redis at a URL."""
    if is_folder(place):
        if url is not None:
            raise PyriteError(
                "the named maps and lists of a folder are in the folder; leave out the URL of the "
                "collections"
            )
        return FolderCollections(Path(place))
    raise PyriteError(
        "the peers of a deployment need to know where the named maps and lists are; say "
        "--collections redis://host:6379/0"
    )
