"""What an instance has for durable jobs: the jobs of a folder or of a deployment, and with a folder
the processes that run them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyrite.collections.redis import RedisCollections
from pyrite.durable.client.jobs import DurableJobs
from pyrite.durable.collections.collections import FolderCollections
from pyrite.durable.folder.locks import remove_dead
from pyrite.durable.hosts.keeper import Keeper
from pyrite.durable.hosts.places import is_folder, open_agreed_store, open_queues
from pyrite.durable.store.deployment import hidden
from pyrite.errors import PyriteError
from pyrite.exchange.driving import SparkSettings
from pyrite.functions import shorten
from pyrite.job import Execution, Job


class Durable:
    """`starts` is whether the processes start by themselves when there is a job to run; without it
    `start` starts them."""

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        peers: int | None,
        collections: RedisCollections | None,
        run_callback: Callable[[Callable[[], None]], None],
        starts: bool = True,
    ) -> None:
        if not isinstance(place, (str, os.PathLike)) or not os.fspath(place):
            raise PyriteError(
                "durable= is a folder, or the URL of a deployment; got " + shorten(place)
            )
        where = os.fspath(place)
        url: str | None = None
        self._keeper: Keeper | None = None
        self._starts = starts
        self.collections: FolderCollections | RedisCollections
        if is_folder(where):
            if collections is not None:
                raise PyriteError(
                    "the named maps and lists of an instance with a folder for durable jobs are in"
                    " that folder; leave out collections="
                )
            where = os.path.abspath(os.path.expanduser(where))
            self.collections = FolderCollections(Path(where))
            roles = ["coordinator", *["peer"] * _checked(peers)]
            self._keeper = Keeper(where, roles)
            remove_dead(Path(where))
        else:
            if peers is not None:
                raise PyriteError(
                    "the peers of a deployment run by themselves; start them with `pyrite peers -n"
                    f" {peers} --durable URL`, and leave out peers="
                )
            if collections is None:
                raise PyriteError(
                    "durable jobs of a deployment need named maps and lists that all machines "
                    "reach; add collections='redis://host:6379/0', or --collections to a command"
                )
            self.collections = collections
            url = collections.server.url
        self.known_as = where if hidden(where) == where else None
        """The place, if it may be noted for others to find; None if its URL has a secret."""
        self._jobs = DurableJobs(
            partial(open_agreed_store, where, url),
            partial(open_queues, where),
            self.collections,
            run_callback=run_callback,
        )
        if starts and self._keeper is not None and self._jobs.has_open_jobs():
            self._keeper.start()

    def execute(self, job: Job, spark: SparkSettings | None = None) -> Execution:
        execution = self._jobs.execute(job, spark)
        if self._starts:
            self.start()
        return execution

    def start(self) -> None:
        """Starts the coordinator and the peers of a folder, unless they were started."""
        if self._keeper is not None:
            self._keeper.start()

    def jobs(self) -> list[Execution]:
        found = self._jobs.jobs()
        self._start_for(*found)
        return found

    def job(self, id: str) -> Execution:
        found = self._jobs.job(id)
        self._start_for(found)
        return found

    def _start_for(self, *executions: Execution) -> None:
        """Whoever had started the processes may be gone."""
        if self._starts and not all(execution.done() for execution in executions):
            self.start()

    def processes(self) -> list[tuple[str, int]]:
        return [] if self._keeper is None else self._keeper.processes()

    def close(self) -> None:
        self._jobs.close()
        if self._keeper is not None:
            self._keeper.close()


def _checked(peers: int | None) -> int:
    if peers is None:
        return max(2, os.cpu_count() or 1)
    if isinstance(peers, bool) or not isinstance(peers, int) or not 1 <= peers <= 512:
        raise PyriteError(f"peers must be a whole number from 1 to 512; got {shorten(peers)}")
    return peers
