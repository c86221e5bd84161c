"""The interface of a store of nodes. All stores do the same; one set of tests says what.

A `Store` is one session. Its ephemeral nodes go when it is closed, or when its process dies. One
thread uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyrite.durable.protocol.tree.writes import Write
from pyrite.errors import PyriteError


class StoreError(PyriteError):
    """The store cannot be used. The message says why, and what to do."""


class SessionLost(StoreError):
    """The session has ended: its ephemeral nodes are gone, or will be. Whoever had it must begin
    anew, with a new store and under a new name."""


class EpochIsOver(StoreError):
    """Another coordinator leads: the transaction was not done."""

    @classmethod
    def of(cls, epoch: int, current: int) -> EpochIsOver:
        return cls(f"the epoch is {current}, not {epoch}: another coordinator leads")


class Store(Protocol):
    """Paths begin with a slash and are relative to the cluster's node; see `tree.paths`. Parents
    come into being with their first child, unless a method says otherwise. What is listed as
    children includes ephemeral nodes."""

    def get(self, path: str) -> str | None:
        """The data of a node; None if it is not there."""

    def children(self, path: str) -> list[str]:
        """The names of the children, sorted. Empty if the node is not there."""

    def below(self, *roots: str) -> dict[str, str]:
        """The data of each node at and below these paths that was created as such, by path. The
        nodes that are there only as parents may be left out."""

    def create(self, path: str, data: str = "") -> bool:
        """Creates a node. False, and no change, if it is there: the first one wins."""

    def create_child(self, path: str, data: str = "") -> bool | None:
        """The same, but only below a node that is there: None if the parent is not."""

    def set(self, path: str, data: str) -> bool:
        """Sets the data of a node. False, and no change, if it is not there."""

    def delete(self, path: str) -> None:
        """Deletes a node with all below it, if it is there."""

    def create_ephemeral(self, path: str, data: str = "") -> None:
        """Creates a node that lives as long as this session. Raises StoreError if it is there."""

    def stand(self, path: str, data: str = "") -> str:
        """Creates an ephemeral child of a path whose name ends in a number that is higher than
        those of all others so far. Returns the name. It is for elections: the lowest one leads."""

    def raise_epoch(self) -> int:
        """Raises the number in `paths.EPOCH` by one and returns it."""

    def transact(self, epoch: int, writes: Sequence[Write]) -> None:
        """Does all writes in one step if `paths.EPOCH` still has this number, else raises
        EpochIsOver and does none. `CloseQueues` is not for stores: it is skipped. What is below a
        node to delete may go earlier, if it is too much for one step."""

    # Watches tell once. To watch is also to read, in one step.

    def watch(self, path: str) -> str | None:
        """The data of a node as `get` does; from now on `changed` tells when it is created, set or
        deleted, once."""

    def watch_all(self, paths: Sequence[str]) -> list[str | None]:
        """The same for many nodes, which is faster than one after the other."""

    def watch_children(self, path: str) -> list[str]:
        """The same for the names of the children: `changed` tells when one comes or goes."""

    def changed(self, timeout: float | None) -> str | None:
        """The path of a watch that fired, in order; None after so many seconds. 0 does not wait. A
        watch may fire without a change. Raises SessionLost when the session has ended."""

    def wake(self) -> None:
        """Lets `changed` return None now. The only method that another thread may call."""

    def close(self) -> None:
        """Ends the session: its ephemeral nodes go at once."""
