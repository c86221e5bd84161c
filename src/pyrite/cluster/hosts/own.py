"""The local cluster of an instance, and the client to it: both made when they are used first."""

from __future__ import annotations

import builtins
import threading
from typing import Any

from pyrite.cluster.client import Client
from pyrite.cluster.collections.storage import RemoteList, RemoteMap
from pyrite.cluster.hosts.local import LocalCluster
from pyrite.job import Execution


class OwnCluster:
    def __init__(self, members: int, *, cooperative_threads: int | None, collections: str) -> None:
        self._cluster = LocalCluster(
            members, cooperative_threads=cooperative_threads, collections=collections
        )
        self._client: Client | None = None
        self._lock = threading.Lock()

    @property
    def client(self) -> Client:
        with self._lock:
            if self._client is None:
                self._client = self._cluster.client()
            return self._client

    def processes(self) -> builtins.list[tuple[str, int]]:
        """The role and the number of each process that was started."""
        pids = [] if self._client is None else self._cluster.pids
        return [("member", pid) for pid in pids]

    def light_jobs(self) -> builtins.list[Execution]:
        """The light jobs that run on the members."""
        return [] if self._client is None else self._client.light_jobs()

    def map(self, name: str) -> RemoteMap:
        return self.client.map(name)

    def list(self, name: str) -> RemoteList:
        return self.client.list(name)

    def contents(self) -> builtins.list[tuple[str, str, builtins.list[Any]]]:
        return [] if self._client is None else self._client.collections()

    def close(self) -> None:
        client = self._client
        if client is not None:
            client.close()
        self._cluster.close()
