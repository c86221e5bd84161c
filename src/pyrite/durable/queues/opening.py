"""Opens queues by where they are: a folder, or servers of NATS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyrite.durable.queues.queues import PATIENCE, Queues, QueuesError
from pyrite.durable.queues.sqlite import SqliteQueues


def open_queues(
    *,
    folder: Path | None = None,
    nats: Sequence[Sequence[str]] = (),
    cluster: str = "",
    patience: float = PATIENCE,
) -> Queues:
    """`nats` has for each server its URL, or those of the members of its cluster. `cluster` is the
    name of the deployment. Calls wait for a server that is away for `patience` seconds."""
    if folder is not None:
        return SqliteQueues(folder, patience=patience)
    try:
        from pyrite.durable.queues.nats import NatsQueues
    except ImportError as error:
        raise QueuesError(
            "queues in NATS need the package nats-py; install pyrite[durable]"
        ) from error
    return NatsQueues(nats, cluster=cluster, patience=patience)
