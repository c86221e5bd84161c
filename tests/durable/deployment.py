"""A deployment for tests: ZooKeeper, NATS and Redis on loopback, coordinators and peers as
processes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pyrite
from pyrite import Instance
from pyrite.durable.hosts.keeper import launch
from pyrite.durable.hosts.places import open_queues
from pyrite.durable.protocol.tree import paths
from pyrite.durable.queues.queues import Queues
from pyrite.durable.store.opening import open_store
from pyrite.durable.store.store import Store
from tests.nats import Nats
from tests.nats import cluster as nats_cluster
from tests.redis_server import RedisServer
from tests.zookeeper import Ensemble, ZooKeeper


class Running:
    """A coordinator or a peer, which can be started again."""

    def __init__(self, role: str, place: str, collections: str) -> None:
        self.role = role
        self._start = lambda: launch(role, place, collections=collections)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """The process ends with the thread that calls this."""
        if self._process is None or self._process.poll() is not None:
            self._process = self._start()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def suspend(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


class Deployment:
    """One or three servers of ZooKeeper and of NATS. Nothing runs before `start`."""

    def __init__(
        self,
        folder: Path,
        redis: RedisServer,
        *,
        zookeepers: int = 1,
        nats: int = 1,
        coordinators: int = 1,
        peers: int = 2,
        session: float = 2.0,
    ) -> None:
        self.zookeepers: list[ZooKeeper]
        for name in ("zookeeper", "nats"):
            (folder / name).mkdir()
        if zookeepers == 1:
            self.zookeepers = [ZooKeeper(folder / "zookeeper", session=session)]
        else:
            self.zookeepers = Ensemble(folder / "zookeeper", session=session).servers
        self.nats = (
            [Nats(folder / "nats")] if nats == 1 else nats_cluster(folder / "nats", size=nats)
        )
        self.redis = redis
        hosts = ",".join(server.address for server in self.zookeepers)
        urls = ",".join(server.url for server in self.nats)
        self.url = f"zk://{hosts}/test?nats={urls}&session={session:g}"
        self.coordinators = [self._running("coordinator") for _ in range(coordinators)]
        self.peers = [self._running("peer") for _ in range(peers)]

    def _running(self, role: str) -> Running:
        return Running(role, self.url, self.redis.url)

    @property
    def processes(self) -> list[Running]:
        return [*self.coordinators, *self.peers]

    def start(self) -> None:
        for server in self.zookeepers:
            server.launch()
        for nats in self.nats:
            nats.start()
        for server in self.zookeepers:
            server.wait()
        for process in self.processes:
            process.start()

    def instance(self) -> Instance:
        return pyrite.instance(durable=self.url, collections=self.redis.url)

    def store(self) -> Store:
        return open_store(self.url)

    def queues(self) -> Queues:
        return open_queues(self.url)

    def leader(self, store: Store) -> Running:
        """The coordinator that leads."""
        first = min(store.children(paths.ELECTION), key=lambda name: name.rpartition("-")[2])
        pid = int((store.get(f"{paths.ELECTION}/{first}") or "").rpartition(":")[2])
        return next(each for each in self.coordinators if each.pid == pid)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
        for nats in self.nats:
            nats.kill()
        for server in self.zookeepers:
            server.kill()
