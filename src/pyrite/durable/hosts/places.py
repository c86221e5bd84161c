"""What is at a place, which is a folder or the URL of a deployment."""

from __future__ import annotations

from pathlib import Path

from pyrite.durable.collections.folder import FolderCollections
from pyrite.durable.parts.completion import JobCollections
from pyrite.durable.queues.queues import Queues, QueuesError
from pyrite.durable.queues.sqlite import SqliteQueues
from pyrite.durable.store.opening import deployment_at


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
    return NatsQueues(deployment.nats, cluster=deployment.cluster)


def open_collections(place: str) -> JobCollections:
    return FolderCollections(Path(place))
