"""The master's side of on_end hooks. The hooks run in a process of their own, so that a hook can
neither break nor delay the run. The master appends each end of a job to a file, and wakes that
process through a pipe, which never blocks. At the end of the run it says so and waits until that
process has read how the jobs ended: afterwards, another run may begin in the store.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence

from pyrite.system.alive import Identity
from pyrite.system.private import open_private
from pyrite.workload.input.plan import Plan
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.entries import Entry
from pyrite.workload.storage.hook_files import (
    ends_of,
    on_end_of,
    pack_ends,
    read_called,
    read_process,
    write_process,
)
from pyrite.workload.storage.store import Status, Store
from pyrite.workload.system import processes
from pyrite.workload.system.copies import OwnFile, own_pipe
from pyrite.workload.system.origin import Origin

ENDED = b"e"
"""Sent through the pipe: the final status of the run has been written."""

HEARD_SECONDS = 10.0
LEAVING_SECONDS = 2.0


class Hooks:
    def __init__(
        self, store: Store, number: int, status: Status, *, origin: Origin | None = None
    ) -> None:
        self._store = store
        self._number = number
        self._earlier = read_process(store)
        self._ends = open_private(ends_of(store, status.session), os.O_WRONLY | os.O_TRUNC)
        heard, tell_heard = own_pipe()
        self._heard = OwnFile(heard)
        try:
            self._process = processes.start(
                "hooks",
                {
                    "store": str(store),
                    "plan": number,
                    "session": status.session,
                    "heard": tell_heard,
                },
                log=store.folder / "hooks.log",
                files=(tell_heard,),
                waits=True,
                origin=origin,
            )
        finally:
            os.close(tell_heard)
        write_process(store, Identity.of(self._process.pid))
        self._pipe = processes.own_input(self._process)
        os.set_blocking(self._pipe.file, False)
        threading.Thread(target=self._process.wait, name="workload hooks", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, ends: list[tuple[int, Entry]]) -> None:
        """Some jobs have reached their final states, in this order."""
        try:
            os.write(self._ends, pack_ends(ends))
            os.write(self._pipe.file, b".")
        except OSError:  # the disk or the pipe is full, or the process was killed
            pass

    def tell_missed(self, plan: Plan, entries: Sequence[Entry], done: Iterable[int]) -> None:
        """Tells of the jobs that were done before this session, and whose hooks were not called,
        because the master was killed."""
        hooked = [job for job in done if job in plan.hooks and job not in plan.given]
        if not hooked or not self._earlier.wait(LEAVING_SECONDS):
            return  # that process ends with its master; so its master was not killed
        called = read_called(self._store, self._number)
        missed = [
            (job, entries[job]._replace(state=_result_state(entries[job])))
            for job in hooked
            if (job, entries[job].attempt) not in called
        ]
        if missed:
            self.tell(sorted(missed, key=lambda end: end[1].ended or 0.0))

    def close(self) -> None:
        """The final status of the run has been written."""
        try:
            os.set_blocking(self._pipe.file, True)
            os.write(self._pipe.file, ENDED)
            select.select([self._heard.file], [], [], HEARD_SECONDS)
        except OSError:  # the process was killed
            pass
        self._pipe.close()
        self._heard.close()
        os.close(self._ends)


def _result_state(entry: Entry) -> JobState:
    """A map may be waiting in the journal although all its branches are done."""
    return entry.state if entry.state.has_result else JobState.DONE


def start_hooks(
    store: Store, number: int, plan: Plan, status: Status, *, origin: Origin | None = None
) -> Hooks | None:
    """None if the run has no hooks, or their process cannot be started."""
    if not plan.hooks and not on_end_of(store, number).exists():
        return None
    try:
        return Hooks(store, number, status, origin=origin)
    except (OSError, subprocess.SubprocessError) as error:
        # In the log of the master, or to the user, if the master is a thread of the user's process.
        print(f"on_end hooks are not called: their process cannot start: {error}", file=sys.stderr)
        return None
