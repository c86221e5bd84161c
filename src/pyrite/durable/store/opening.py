"""Opens the store of a folder or of a deployment."""

from __future__ import annotations

import os
from pathlib import Path

from pyrite.durable.folder.layout import nodes_file
from pyrite.durable.store.deployment import SCHEME, Deployment, hidden
from pyrite.durable.store.sqlite import SqliteStore
from pyrite.durable.store.store import Store, StoreError
from pyrite.wire.zookeeper import check_installed


def deployment_at(place: str | os.PathLike[str]) -> Deployment | None:
    """What the URL of a deployment says. None if the place is a folder."""
    if not isinstance(place, str) or "://" not in place:
        return None
    if not place.startswith(SCHEME):
        raise StoreError(
            f"{hidden(place)} is neither a folder nor the URL of a deployment, which begins with "
            f"{SCHEME}"
        )
    return Deployment.parse(place)


def open_existing_store(place: str) -> Store:
    """The same. Raises if a folder has none, and does not make it."""
    if deployment_at(place) is None and not nodes_file(Path(place)).exists():
        what = "the folder does not exist" if not Path(place).exists() else "nothing was ever there"
        raise StoreError(f"there are no durable jobs in {place}: {what}")
    return open_store(place)


def open_store(place: str | os.PathLike[str]) -> Store:
    """A new session of the store in a folder, or of a deployment at a URL."""
    deployment = deployment_at(place)
    if deployment is None:
        return SqliteStore(Path(place))
    check_installed("a deployment")
    from pyrite.durable.store.zookeeper import ZooKeeperStore  # an extra: who uses it loads it

    return ZooKeeperStore(deployment)
