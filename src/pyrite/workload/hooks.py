"""The process that calls the on_end hooks of a run: those of its jobs in the order in which the
jobs end, and that of the run when the run has ended.

The hooks run in a child process, which is replaced when a hook kills it or takes too long. What
they print, and their errors, go to `hooks.log` in the store.
"""

from __future__ import annotations

import os
import pickle
import select
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, NamedTuple, NoReturn

from pyrite.workload.input.commands.command import Call
from pyrite.workload.masters.hooks import ENDED
from pyrite.workload.outcomes import row_of
from pyrite.workload.run import Run
from pyrite.workload.storage.hook_files import ends_of, note_called, on_end_of, read_ends
from pyrite.workload.storage.store import Store
from pyrite.workload.system import processes

HOOK_SECONDS = float(os.environ.get("PYRITE_HOOK_SECONDS", "60"))
"""How long one hook may take, and how long all of them may take after the end of the run."""


class _Due(NamedTuple):
    """A hook that has to be called: its pickled function, what to call it with, and its name. If it
    is of a job, `end` is the job and its attempt."""

    function: bytes
    argument: Callable[[], Any]
    name: str
    end: tuple[int, int] | None = None


def main(config: dict[str, Any]) -> NoReturn:
    processes.take_signals()
    processes.adopt_orphans()
    store = Store(config["store"])
    try:
        os.set_inheritable(config["heard"], False)
        _Caller(store, config["plan"], config["session"], config["heard"]).work()
        ends_of(store, config["session"]).unlink(missing_ok=True)
    except OSError:  # the store was removed
        pass
    except Exception:
        _say(f"no more on_end hooks are called:\n{traceback.format_exc().rstrip()}")
    finally:
        processes.end_children()
        os._exit(0)


class _Caller:
    def __init__(self, store: Store, number: int, session: int, heard: int) -> None:
        self._store = store
        self._number = number
        self._heard = heard
        plan = store.read_plan(number)
        self._ids = plan.ids
        self._hooks = plan.hooks
        self._on_end = on_end_of(store, number)
        self._ends = ends_of(store, session)
        self._read_to = 0
        self._due: deque[_Due] = deque()
        self._child = 0
        self._begun = -1  # a pipe by which the child tells that it begins the next hook
        self._late = inf  # when the child has taken too long
        self._give_up = inf

    def work(self) -> None:
        while self._give_up == inf or self._due or self._child:
            if not self._child and self._due:
                self._start_child()
            files = [self._begun] if self._child else []
            if self._give_up == inf:
                files.append(0)
            moment = min(self._late, self._give_up)
            seconds = None if moment == inf else max(0.0, moment - time.monotonic())
            ready = select.select(files, [], [], seconds)[0]
            if self._child and self._begun in ready:  # first, so that what was called is noted
                self._watch_child()
            elif time.monotonic() >= moment:
                self._end_child("did not end in time and was stopped")
                if time.monotonic() >= self._give_up:
                    return
            if 0 in ready and not self._hear():
                return

    def _hear(self) -> bool:
        """The master has told of ends, or that the run has ended. Returns False if the master was
        killed."""
        told = os.read(0, 4096)
        has_ended = ENDED in told
        if has_ended:
            self._give_up = time.monotonic() + HOOK_SECONDS
        elif not told:
            return False
        for job, entry, position in read_ends(self._ends, self._read_to):
            self._read_to = position
            row = row_of(self._ids[job], entry)
            name = f"of job '{self._ids[job]}'"
            end = (job, entry.attempt)
            self._due.append(_Due(self._hooks[job], partial(dict, row), name, end))
        if has_ended and self._on_end.exists():
            # Now, because another run may begin in the store before the hook is due. The table is
            # read, so the handle keeps it.
            run = Run.attach(self._store.folder)
            run.table()
            self._due.append(_Due(self._on_end.read_bytes(), lambda: run, "of the run"))
        if has_ended:
            os.write(self._heard, b".")
        return True

    # The child process

    def _start_child(self) -> None:
        self._begun, tell = os.pipe()
        self._child = os.fork()
        if not self._child:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for due in self._due:
                os.write(tell, b".")
                _call(due)
            os._exit(0)
        os.close(tell)
        self._late = time.monotonic() + HOOK_SECONDS
        self._last: _Due | None = None

    def _watch_child(self) -> None:
        begun = os.read(self._begun, 4096)
        for _ in begun:  # a hook that has begun is not due any more
            self._note_last()
            self._last = self._due.popleft()
        self._late = time.monotonic() + HOOK_SECONDS
        if not begun:
            self._end_child("")

    def _end_child(self, why: str) -> None:
        if not self._child:
            return
        if why:
            processes.kill_family(self._child)
        _, status = os.waitpid(self._child, 0)
        processes.end_children()  # what the hooks left running
        code = os.waitstatus_to_exitcode(status)
        if why or code:
            why = why or f"ended its process ({processes.cause_of(code)})"
            _say(f"the on_end hook {self._last.name if self._last else ''} {why}")
        os.close(self._begun)
        self._note_last()
        self._child = 0
        self._late = inf

    def _note_last(self) -> None:
        """The last hook that has begun has ended."""
        if self._last is not None and self._last.end is not None:
            with suppress(OSError):  # the plan is gone: another run has begun in the store
                note_called(self._store, self._number, *self._last.end)


def _call(due: _Due) -> None:
    try:
        call: Call = pickle.loads(due.function)
        call.function(due.argument())
    except BaseException:
        _say(f"the on_end hook {due.name} raised an exception:\n{traceback.format_exc().rstrip()}")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def _say(text: str) -> None:
    moment = time.strftime("%Y-%m-%d %H:%M:%S")
    os.write(2, f"{moment} {text}\n".encode(errors="backslashreplace"))
