"""Orders that a worker gives back."""

from __future__ import annotations

import selectors
import time
from pathlib import Path

from pyrite.workload import Workload
from pyrite.workload.input.options import Options
from pyrite.workload.masters.master import Master
from pyrite.workload.storage.cleanup_queue import Ending, SegmentWriter, head
from pyrite.workload.storage.encoding import NOTHING
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.store import Store
from pyrite.workload.system.origin import Origin
from pyrite.workload.workers import orders
from pyrite.workload.workers.links import Listeners, WorkerLink
from tests.workload import commands


class SlowWorker(WorkerLink):
    """A worker that the system has not let run since its orders came."""

    def register(self, selector: selectors.BaseSelector, listeners: Listeners) -> None:
        self.orders: list[bytes] = []
        self._give_back = listeners.on_return

    def send(self, order: bytes) -> None:
        self.orders.append(order)

    def recall(self) -> None:
        while self.orders:
            self._give_back(self.orders.pop())

    def read(self) -> bytes | None:
        return None

    def kill(self) -> None:
        pass

    def bury(self, selector: selectors.BaseSelector) -> str:
        return ""


def test_orders_that_a_worker_gives_back_are_sent_out_again_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path / "run")
    store.make()
    workload = Workload()
    for n in range(3):
        workload.add(str(n), commands.nothing)
    plan, book = workload._plan(None)
    journal = Journal(store)
    store.write_plan(1, plan, book, Origin.here())
    journal.begin(1, plan)
    master = Master(store, plan, journal, Options(), lock=0, start_seconds=60)
    try:
        slow, quick = (SlowWorker(name, journal.new_segment(name)) for name in ("w1", "w2"))
        for worker in (slow, quick):
            master._welcome(worker)
            master._conductor.is_ready(worker.name, time.monotonic())
        master._assign()
        assert [len(slow.orders), len(quick.orders)] == [2, 1]
        done = orders.unpack(quick.orders.pop())
        ending = Ending(done.job, done.attempt, done.fingerprint, 1.0, 2.0, NOTHING)
        record = head(SegmentWriter(store.segment(quick.segment), plan=1).append(ending))
        master._take_in(quick, record, time.monotonic())
        master._recall()
        assert [len(slow.orders), len(quick.orders)] == [1, 1]
    finally:
        master._reaper.close()
        journal.close()
