"""The parts of a job run one at a time in this thread, with real queues and a real store in a
folder, without a coordinator: a test decides who works on which part, and who stops where."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from pyrite import DAG, JobConfig
from pyrite.durable.client.submission import Submission
from pyrite.durable.folder.locks import Lock
from pyrite.durable.parts.code import unpacked_code
from pyrite.durable.parts.committing import PartStopped, write_sentinels
from pyrite.durable.parts.completion import CompletionPart
from pyrite.durable.parts.concurrent import ConcurrentPart
from pyrite.durable.parts.sequential import SequentialPart
from pyrite.durable.parts.tally import Tally
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.workflow import COMPLETION, Part
from pyrite.durable.queues.sqlite import SqliteQueues
from pyrite.durable.store.sqlite import SqliteStore
from pyrite.job import durable_job
from tests.durable.threads import Applied

Check = Callable[[], None]
LATE = 6


class Bench:
    """One job. `queues` is the bench's own connection; each worker has another."""

    def __init__(self, folder: Path, dag: DAG, **config: Any) -> None:
        self.folder = folder
        self.queues = SqliteQueues(folder)
        self.store = SqliteStore(folder)
        self.collections = Applied()
        job = durable_job(dag, JobConfig(**config), lambda job: None)  # type: ignore[arg-type, return-value]
        Submission(job, "job", self.collections, self.queues).send(lambda act: act(self.store))
        with unpacked_code(self.queues.code("job")) as (code, _):
            self.workflow = code.planned.workflow
        self.parts = list(self.workflow.parts_of("job"))
        for part in self.parts:
            self.store.create(paths.part(part))
        self.sealed: set[Part] = set()
        self.tallies: list[Tally] = []
        self.metrics: dict[str, Any] = {}
        self._offers = count(1)

    def work(
        self,
        part: Part,
        check: Check = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> bool:
        """A new peer works on a part until its end, and seals it. False if `check` stopped it."""
        offer = next(self._offers)
        owner = f"peer-{offer}"
        lock, queues = Lock(self.folder, owner), SqliteQueues(self.folder)
        self._last = lock
        tally = Tally(part, offer)
        self.tallies.append(tally)
        try:
            with unpacked_code(queues.code("job")) as (code, files):
                if part.task == COMPLETION:
                    self.metrics = CompletionPart(
                        code, part, queues, self.collections, offer=offer, check=check
                    ).run()
                elif self.workflow.by_name[part.task].kind == "sequential":
                    SequentialPart(
                        code, part, queues, offer=offer, files=files, check=check, tally=tally
                    ).run()
                else:
                    ConcurrentPart(
                        code,
                        part,
                        queues,
                        self.store,
                        owner=owner,
                        files=files,
                        check=check,
                        tally=tally,
                    ).run()
            check()
            write_sentinels(queues, self.workflow, part, offer)
            self.sealed.add(part)
            return True
        except PartStopped:
            return False
        finally:
            lock.release()
            queues.close()

    def work_instead(self, part: Part) -> None:
        """Another peer does a part while the one that has it is paused and is thought dead."""
        self._last.release()
        assert self.work(part)

    def work_all(self) -> None:
        for part in self.parts:
            if part not in self.sealed:
                assert self.work(part)

    def close(self) -> None:
        self.queues.close()
        self.store.close()

    def found(self, name: str = "out") -> Counter[Any]:
        return Counter(self.collections.list(name))


class StopAt:
    """A check that stops its peer at the n-th call; or does something else there, goes on for some
    calls, as one that has not heard of it yet, and then stops."""

    def __init__(self, at: int, instead: Callable[[], None] | None = None) -> None:
        self._left = at
        self._instead = instead

    @property
    def was_reached(self) -> bool:
        return self._left <= 0

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0 and self._instead is not None:
            self._instead()
        elif self._left == 0 or self._left < -LATE:
            raise PartStopped("as if it had died, or has heard that it is thought dead")
