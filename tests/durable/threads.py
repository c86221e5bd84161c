"""Durable jobs in one process: a leader and some peers on threads, with a folder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pyrite import DAG, JobConfig
from pyrite.collections import MemoryCollections
from pyrite.durable.client.jobs import DurableJobs
from pyrite.durable.coordinator.leader import Leader
from pyrite.durable.folder.locks import Lock
from pyrite.durable.parts.spark_part import NewDriver, no_driver
from pyrite.durable.peer.peer import Peer, new_name
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import WANTED
from pyrite.durable.queues.sqlite import SqliteQueues
from pyrite.durable.store.sqlite import SqliteStore
from pyrite.exchange.collected import Collected
from pyrite.job import Execution, durable_job

On = Literal["peers", "spark"]


class Applied(MemoryCollections):
    """Named maps and lists in memory, which take the additions of a job once."""

    def __init__(self) -> None:
        super().__init__()
        self._jobs: set[str] = set()

    def apply(self, job: str, collected: Iterable[Collected]) -> None:
        if job not in self._jobs:
            for each in list(collected):
                each.put(self)
            self._jobs.add(job)

    def close(self) -> None: ...


class Threads:
    def __init__(self, folder: Path, new_driver: NewDriver = no_driver) -> None:
        self.folder = folder
        self._new_driver = new_driver
        self.collections = Applied()
        self.errors: list[BaseException] = []
        self._stopping = threading.Event()
        self._peers: list[str] = []
        self._threads: list[threading.Thread] = []
        self.jobs = DurableJobs(
            lambda: SqliteStore(folder),
            lambda: SqliteQueues(folder),
            self.collections,
            run_callback=lambda call: call(),
        )

    def lead(self) -> None:
        self._run(self._lead)

    def add_peer(self) -> None:
        name = new_name()
        self._peers.append(name)
        self._run(lambda: self._live(name))

    def execute(self, dag: DAG, *, on: On = "peers", **config: object) -> Execution:
        return durable_job(dag, JobConfig(**config), self.jobs.execute, on=on).execute()  # type: ignore[arg-type]

    def stop(self) -> None:
        store = SqliteStore(self.folder)
        for name in self._peers:
            store.create(paths.shutdown(name), WANTED)
        for thread in self._threads[1:]:
            thread.join(20)
            assert not thread.is_alive(), "a peer has not stopped"
        self._stopping.set()
        for thread in self._threads:
            thread.join(20)
        store.close()
        self.jobs.close()
        assert not self.errors, self.errors

    def _run(self, act: Callable[[], None]) -> None:
        def run() -> None:
            try:
                act()
            except BaseException as error:
                self.errors.append(error)

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _lead(self) -> None:
        store, queues = SqliteStore(self.folder), SqliteQueues(self.folder)
        leader = Leader(store, lambda job, _: _close(self.folder, job))
        leader.begin()
        while not self._stopping.is_set():
            leader.step(0.05)
        leader.stop()
        store.close()
        queues.close()

    def _live(self, name: str) -> None:
        lock = Lock(self.folder, name)
        store, queues = SqliteStore(self.folder), SqliteQueues(self.folder)
        Peer(store, queues, self.collections, name=name, new_driver=self._new_driver).run()
        store.close()
        queues.close()
        lock.release()


def _close(folder: Path, job: str) -> None:
    queues = SqliteQueues(folder)
    queues.close_job(job)
    queues.close()


@contextmanager
def running(
    folder: Path, *, peers: int = 2, new_driver: NewDriver = no_driver
) -> Iterator[Threads]:
    threads = Threads(folder, new_driver)
    threads.jobs.has_open_jobs()  # its thread begins here, not in a test
    threads.lead()
    for _ in range(peers):
        threads.add_peer()
    yield threads
    threads.stop()
