"""Starts a run, and returns what was started: its store and its master. `run` makes the handle of
it."""

from __future__ import annotations

import os
import subprocess
import time
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from pyrite.errors import InvalidWorkload, PyriteError
from pyrite.system.alive import NOBODY, Identity
from pyrite.workload.input.commands.command_book import CommandBook
from pyrite.workload.input.options import Options
from pyrite.workload.input.plan import Plan
from pyrite.workload.masters.supply import MakeExecutor
from pyrite.workload.masters.transient import TransientMaster
from pyrite.workload.storage.given import given_results
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.journal_reading import read_plan_number
from pyrite.workload.storage.paper_journal import PaperJournal
from pyrite.workload.storage.store import Status, Store
from pyrite.workload.storage.temporary import temporary_store
from pyrite.workload.system import processes
from pyrite.workload.system.copies import above_streams
from pyrite.workload.system.origin import Origin
from pyrite.workload.workers.launched import launching
from pyrite.workload.workers.launched.launching import Launcher


@dataclass(frozen=True, slots=True)
class Started:
    """A run that this process has started, and its master: a process or a thread."""

    store: Store
    process: subprocess.Popen[bytes] | None = None
    master: TransientMaster | None = None
    is_temporary: bool = False

    def cancel(self) -> None:
        if self.process is not None:
            self.process.terminate()
        if self.master is not None:
            self.master.cancel()


@dataclass(frozen=True, slots=True)
class Supply:
    """What the user gave to start the workers with, if anything."""

    executor: Executor | MakeExecutor | None = None
    launcher: Launcher | None = None

    def __str__(self) -> str:
        """As in a call: `launcher=ssh_map`. Empty if the workers are processes of this machine."""
        for name, value in (("launcher", self.launcher), ("executor", self.executor)):
            if value is not None:
                return f"{name}={getattr(value, '__qualname__', type(value).__name__)}"
        return ""


def begin(
    plan: Plan,
    book: CommandBook,
    options: Options,
    *,
    store: str | os.PathLike[str] | None,
    supply: Supply,
) -> Started:
    """Starts a new run of a plan."""
    if plan.given:  # before anything is written
        _check_given(store, plan)
    place = Store(store) if store is not None else temporary_store()
    place.make()
    with place.locked() as lock:
        earlier = place.status()
        try:
            status = new_status(earlier, options, supply)
            status = replace(status, run=status.session, plan=0)
            place.write_status(status)  # first of all, so that others see who is starting a run
            origin = Origin.here()
            with closing(Journal(place)) as journal:
                journal.catch_up()
                number = journal.plan + 1
                status = replace(status, plan=number)
                place.write_status(status)
                place.write_plan(number, plan, book, origin)
                journal.begin(number, plan, given_results(place, journal, plan))
            started = start(place, options, status, lock, supply, origin)
            return replace(started, is_temporary=store is None)
        except BaseException as error:
            _tell_that_it_broke(place, error, earlier)
            raise


def _check_given(store: str | os.PathLike[str] | None, plan: Plan) -> None:
    if store is None:
        id = plan.ids[min(plan.given)]
        raise InvalidWorkload(
            [f"job '{id}' is not selected, and its result is needed; give store=, where it is"]
        )
    with closing(PaperJournal(Store(store))) as journal:
        given_results(Store(store), journal, plan)


def _tell_that_it_broke(store: Store, error: BaseException, earlier: Status | None) -> None:
    """If the new plan is not in the journal yet, the store still belongs to the earlier run."""
    status = store.status()
    if status is None or status.phase != "starting":
        return
    try:
        is_of_earlier = earlier is not None and read_plan_number(store) == earlier.plan
        broken = replace(status.broken_by(error), master=NOBODY)
        store.write_status(earlier if earlier is not None and is_of_earlier else broken)
    except (OSError, PyriteError):
        pass


def new_status(earlier: Status | None, options: Options, supply: Supply) -> Status:
    """The status of the first session of a run, or of the next one."""
    first = Status("starting", Identity.here(), 1, asdict(options), time.time(), supply=str(supply))
    if earlier is None:
        return first
    return replace(first, session=earlier.session + 1, run=earlier.run, plan=earlier.plan)


def start(
    store: Store, options: Options, status: Status, lock: int, supply: Supply, origin: Origin
) -> Started:
    """Starts the master of a run whose plan is in the store."""
    with store.explaining("write to"):
        if options.kind == "transient":
            running = replace(status, phase="running")
            own_lock = above_streams(os.dup(lock))
            master = TransientMaster(
                store, options, running, supply.executor, lock=own_lock, origin=origin
            )
            return Started(store, master=master)
        return _start_process(store, options, status, lock, supply.launcher, origin)


def _start_process(
    store: Store,
    options: Options,
    status: Status,
    lock: int,
    launcher: Launcher | None,
    origin: Origin,
) -> Started:
    """Starts the master of persistent workers."""
    config: dict[str, Any] = {
        "store": str(store),
        "lock": lock,
        "start_seconds": launching.START_SECONDS,
    }
    files = [lock]
    word = b"go"
    door = launching.Door(options.host) if launcher is not None else None
    if door is not None:
        word = door.secret.encode()
        config |= {"listener": door.listener.fileno(), "limits": launching.LIMITS}
        files.append(door.listener.fileno())
    process = processes.start(
        "masters.master",
        config,
        log=store.folder / "master.log",
        files=files,
        waits=True,
        origin=origin,
    )
    assert process.stdin is not None
    try:
        store.write_status(replace(status, phase="running", master=Identity.of(process.pid)))
        process.stdin.write(word)
        process.stdin.flush()
    except BaseException:
        process.stdin.close()  # a master that gets no word to begin ends
        raise
    if launcher is None or door is None:
        process.stdin.close()
    else:
        door.launch(launcher, store, origin.path, options.workers, process.stdin)
    return Started(store, process=process)
