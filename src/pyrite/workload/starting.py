"""Starts runs: a new one, or the next session of one that is resumed. It returns what was started;
`run` makes the handle of it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import IO, Any

from pyrite.errors import InvalidWorkload, PyriteError
from pyrite.workload.input.commands.command_book import CommandBook
from pyrite.workload.input.jobs.job import pool_problem
from pyrite.workload.input.options import Options, checked
from pyrite.workload.input.plan import Plan
from pyrite.workload.masters.transient import TransientMaster
from pyrite.workload.storage.given import check_given, given_results
from pyrite.workload.storage.journal import Journal
from pyrite.workload.storage.journal_reading import read_plan_number
from pyrite.workload.storage.paper_journal import PaperJournal
from pyrite.workload.storage.store import Status, Store
from pyrite.workload.storage.temporary import temporary_store
from pyrite.workload.system import processes
from pyrite.workload.system.alive import NOBODY, Identity
from pyrite.workload.system.copies import above_streams
from pyrite.workload.system.origin import Origin
from pyrite.workload.system.private import write_private
from pyrite.workload.workers.launched import launching
from pyrite.workload.workers.launched.launching import Launcher, Post

MakeExecutor = Callable[[], Executor]


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
    lock = place.lock()
    earlier = place.status()
    try:
        status = _new_status(place, options, supply)
        status = replace(status, run=status.session, plan=0)
        with place.explaining("write to"):
            place.write_status(status)  # first of all, so that others see who is starting a run
        origin = Origin.here()
        journal = Journal(place)
        try:
            journal.catch_up()
            number = journal.plan + 1
            status = replace(status, plan=number)
            with place.explaining("write to"):
                place.write_status(status)
            place.write_plan(number, plan, book, origin)
            journal.begin(number, plan, given_results(place, journal, plan))
        finally:
            journal.close()
        started = _start(place, options, status, lock, supply, origin)
        return replace(started, is_temporary=store is None)
    except BaseException as error:
        _tell_that_it_broke(place, error, earlier)
        raise
    finally:
        os.close(lock)


def _check_given(store: str | os.PathLike[str] | None, plan: Plan) -> None:
    if store is None:
        id = plan.ids[min(plan.given)]
        raise InvalidWorkload(
            [f"job '{id}' is not selected, and its result is needed; give store=, where it is"]
        )
    journal = PaperJournal(Store(store))
    try:
        given_results(Store(store), journal, plan)
    finally:
        journal.close()


def begin_again(store: Store, changes: dict[str, Any]) -> Started:
    """Starts the next session of the run in a store."""
    store.check_exists()
    supply = Supply(changes.get("executor"), changes.get("launcher"))
    lock = store.lock()
    try:
        earlier = store.status()
        options = _options_of(store, earlier)
        kind = options.kind
        options = checked(
            options.changed(
                {name: changes[name] for name in changes if name not in ("executor", "launcher")}
            ),
            supply.executor,
            supply.launcher,
        )
        used = earlier.supply if earlier is not None and options.kind == kind else ""
        name, _, which = used.partition("=")
        if used and name not in changes:
            raise InvalidWorkload(
                [
                    f"this run used {name}={which}; give {name}= to resume it, or {name}=None to "
                    "resume it with workers on this machine"
                ]
            )
        journal = Journal(store)
        try:
            journal.catch_up()
            number = journal.plan
            was_begun = earlier is None or earlier.plan in (None, number)
            if not number or not was_begun:
                raise PyriteError(
                    f"the run in '{store}' was killed, or failed, before it started; there is "
                    "nothing to resume"
                )
            plan = store.read_plan(number)
            check_given(store, journal, plan)
        finally:
            journal.close()
        _check_pools(plan, options)
        origin = _origin_of(store, number)
        return _start(store, options, _new_status(store, options, supply), lock, supply, origin)
    finally:
        os.close(lock)


def _options_of(store: Store, earlier: Status | None) -> Options:
    try:
        return Options(**earlier.options) if earlier is not None else Options()
    except TypeError:  # it has other fields
        raise store.of_another_version() from None


def _check_pools(plan: Plan, options: Options) -> None:
    problems = [
        f"job '{id}' {pool_problem(pool)}"
        for id, pool in zip(plan.ids, plan.pools)
        if pool is not None and pool not in options.pools
    ]
    if problems:
        raise InvalidWorkload(problems)


def _origin_of(store: Store, plan: int) -> Origin:
    origin = store.read_origin(plan).with_path_of_here()
    if origin.folder is not None and not os.path.isdir(origin.folder):
        raise InvalidWorkload(
            [
                f"the working directory of this run, '{origin.folder}', does not exist any more; "
                "make it again to resume the run"
            ]
        )
    return origin


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


def _new_status(store: Store, options: Options, supply: Supply) -> Status:
    earlier = store.status()
    return Status(
        "starting",
        Identity.here(),
        1 + (earlier.session if earlier is not None else 0),
        asdict(options),
        time.time(),
        run=earlier.run if earlier is not None else 0,
        supply=str(supply),
        plan=earlier.plan if earlier is not None else None,
    )


def _start(
    store: Store, options: Options, status: Status, lock: int, supply: Supply, origin: Origin
) -> Started:
    with store.explaining("write to"):
        if options.kind == "transient":
            running = replace(status, phase="running")
            master = TransientMaster(
                store,
                options,
                running,
                supply.executor,
                lock=above_streams(os.dup(lock)),
                origin=origin,
            )
            return Started(store, master=master)
        return _start_apart(store, options, status, lock, supply.launcher, origin)


def _start_apart(
    store: Store,
    options: Options,
    status: Status,
    lock: int,
    launcher: Launcher | None,
    origin: Origin,
) -> Started:
    """Starts the master of persistent workers as a separate process."""
    config: dict[str, Any] = {
        "store": str(store),
        "options": asdict(options),
        "lock": lock,
        "start_seconds": launching.START_SECONDS,
    }
    files = [lock]
    word = b"go"
    listener = None
    if launcher is not None:
        listener, secret = launching.listen(options.host)
        word = secret.encode()
        config |= {"listener": listener.fileno(), "limits": launching.LIMITS}
        files.append(listener.fileno())
        (store.folder / "launcher.error").unlink(missing_ok=True)
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
    started = Started(store, process=process)
    if launcher is None or listener is None:
        process.stdin.close()
        return started
    host, port = listener.getsockname()[:2]
    listener.close()
    posts = [
        Post(n, str(store), f"{host}:{port}", origin.path, launching.LIMITS, secret)
        for n in range(options.workers)
    ]
    launching.launch(launcher, posts, partial(_launcher_ended, store, process.stdin))
    return started


def _launcher_ended(store: Store, lifeline: IO[bytes], why: str) -> None:
    """Tells the master that no more workers will connect, by closing the pipe that it was started
    with."""
    try:
        if why:
            write_private(store.folder / "launcher.error", why.encode(errors="replace"))
        lifeline.close()
    except OSError:
        pass
