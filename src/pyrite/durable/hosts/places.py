"""What is at a place, which is a folder or the URL of a deployment."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from pyrite.collections.redis.server import without_password
from pyrite.durable.collections.collections import FolderCollections
from pyrite.durable.parts.code import prepared_sinks
from pyrite.durable.parts.completion import JobCollections
from pyrite.durable.protocol.tree import paths
from pyrite.durable.queues import opening
from pyrite.durable.queues.queues import PATIENCE, Queues, QueuesError, QueuesGone
from pyrite.durable.store.opening import deployment_at, open_store
from pyrite.durable.store.store import Store
from pyrite.errors import PyriteError

logger = logging.getLogger("pyrite.durable")


def is_folder(place: str) -> bool:
    return deployment_at(place) is None


def open_queues(place: str, *, patience: float = PATIENCE) -> Queues:
    """Calls wait for a server that is away for `patience` seconds."""
    deployment = deployment_at(place)
    if deployment is None:
        return opening.open_queues(folder=Path(place), patience=patience)
    if not deployment.nats:
        raise QueuesError(
            "the URL of a deployment must say where its NATS servers are; add"
            " ?nats=nats://host:4222 to it"
        )
    urls = [each.split(",") for each in deployment.nats]
    return opening.open_queues(nats=urls, cluster=deployment.cluster, patience=patience)


def closes_queues(place: str) -> Callable[[str, bool], None]:
    """Deletes the queues of a job, and before that what its sinks have prepared, unless the job is
    complete. It opens a connection of its own each time: it happens seldom, and the servers may
    have been started anew in between."""

    def close(job: str, is_complete: bool) -> None:
        queues = open_queues(place)
        try:
            if not is_complete:
                _discard(queues, job)
            queues.close_job(job)
        finally:
            queues.close()
        if is_folder(place):  # without its queues, nobody can complete the job once more
            collections = FolderCollections(Path(place))
            try:
                collections.forget(job)
            finally:
                collections.close()

    return close


def _discard(queues: Queues, job: str) -> None:
    """Peers that were on the job, and the client, do this too, if they live."""
    try:
        packed = queues.code(job)
    except QueuesGone:
        return
    try:
        prepared = prepared_sinks(packed)
    except Exception:
        logger.exception("what the sinks of job %r have prepared is not known", job)
    else:
        prepared.discard()


def lists_queues(place: str) -> Callable[[], list[str]]:
    """The jobs that have queues."""

    def jobs() -> list[str]:
        queues = open_queues(place)
        try:
            return queues.jobs()
        finally:
            queues.close()

    return jobs


def open_collections(place: str, url: str | None = None) -> JobCollections:
    """The named maps and lists: in the folder, or in the Redis at a URL."""
    if is_folder(place):
        if url is not None:
            raise PyriteError(
                "the named maps and lists of a folder are in the folder; leave out the URL of the "
                "collections"
            )
        return FolderCollections(Path(place))
    if url is None:
        raise PyriteError(
            "the peers of a deployment need to know where the named maps and lists are; say "
            "--collections redis://host:6379/0"
        )
    from pyrite.durable.collections.redis import DeploymentCollections  # an extra, too

    return DeploymentCollections(url)


def open_agreed_store(place: str, url: str | None) -> Store:
    """The store, for a client or a peer. All who use a deployment must use the same Redis, else
    results are where nobody looks for them: whoever comes first says which one."""
    store = open_store(place)
    if url is not None:
        try:
            _agree(store, without_password(url))
        except BaseException:
            store.close()
            raise
    return store


def _agree(store: Store, address: str) -> None:
    if store.create(paths.COLLECTIONS, address):
        return
    known = store.get(paths.COLLECTIONS)
    if known is not None and known != address:
        raise PyriteError(
            f"the named maps and lists of this deployment are at {known}, not at {address}; say "
            f"collections='{known}'. To move all of the deployment to another Redis, delete the "
            f"node {paths.COLLECTIONS[1:]} of the cluster in ZooKeeper while nothing runs"
        )
