"""The slots of a transient master. Each job that is under way has one: a segment for its record,
and a log, to which the job writes if it can reach the store.

A slot is used by one job after the other. When a job did not come back, its slot is not used again,
because the job may still write to the log."""

from __future__ import annotations

import os

from pyrite.system.private import open_private
from pyrite.workload.storage.cleanup_queue import Ending, Record, SegmentWriter, head
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.store import Store
from pyrite.workload.workers.transient.capturing import LogEnd


class Slots:
    def __init__(self, store: Store, journal: Journal) -> None:
        self._store = store
        self._journal = journal
        self._free: list[Slot] = []
        self._used: set[Slot] = set()

    def take(self) -> Slot:
        """A slot for a job that is to be submitted."""
        with self._store.explaining("write to"):
            slot = (
                self._free.pop()
                if self._free
                else Slot(
                    self._store, self._journal.new_segment("transient"), plan=self._journal.plan
                )
            )
            self._used.add(slot)
            slot.begin()
        return slot

    def release(self, slot: Slot) -> None:
        """The job of the slot has ended."""
        self._used.remove(slot)
        self._free.append(slot)

    def retire(self, slot: Slot) -> None:
        """The job of the slot did not come back."""
        self._used.remove(slot)
        slot.close()

    def close(self) -> None:
        for slot in (*self._free, *self._used):
            slot.close()


class Slot:
    def __init__(self, store: Store, segment: int, *, plan: int) -> None:
        self.segment = segment
        self._store = store
        self._log = store.log(segment)
        self._writer = SegmentWriter(store.segment(segment), plan=plan)
        self.log_end = LogEnd(str(self._log), 0, 0)
        os.close(open_private(self._log, os.O_WRONLY))

    def begin(self) -> None:
        """A job is about to be submitted. It sets the time of the log when it begins."""
        os.utime(self._log, (0, 0))
        found = os.stat(self._log)
        self.log_end = LogEnd(str(self._log), found.st_ino, found.st_size)

    @property
    def log_start(self) -> int:
        return self.log_end.size

    @property
    def has_begun(self) -> bool:
        """Whether the job has begun; False if it cannot reach the log."""
        try:
            return os.stat(self._log).st_mtime_ns != 0
        except OSError:
            return False

    @property
    def log_size(self) -> int:
        return self._store.log_size(self.segment)

    def record(self, ending: Ending, output: bytes) -> Record:
        """Appends the record of the job, and the output that it could not write to the log
        itself."""
        with self._store.explaining("write to"):
            if output:
                with open(self._log, "ab") as file:
                    file.write(output)
            place = ending._replace(log_start=self.log_start, log_end=self.log_size)
            return head(self._writer.append(place))

    def close(self) -> None:
        self._writer.close()
