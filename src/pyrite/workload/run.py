"""The handle of a run: waits for the run, reads its state and results, cancels it. A handle has no
state besides the store, so any process can make one."""

from __future__ import annotations

import difflib
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import asdict, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import IO, Any

from pyrite import drawing
from pyrite.errors import PyriteError, RunBroken
from pyrite.workload.input.branches import extended
from pyrite.workload.input.options import Options, checked
from pyrite.workload.input.plan import CommandBook, Plan
from pyrite.workload.input.schedule import remaining_paths
from pyrite.workload.masters.transient import TransientMaster
from pyrite.workload.outcomes import COLORS, FailedJobs, NoResult, Results, row_of
from pyrite.workload.scheduling.states import JobState
from pyrite.workload.storage.cleanup_queue import read_error, read_result
from pyrite.workload.storage.encoding import decode
from pyrite.workload.storage.journal import (
    Entry,
    Journal,
    read_entries,
    read_extensions,
    read_plan_number,
)
from pyrite.workload.storage.places import NoPlace, input_places, readers, result_places
from pyrite.workload.storage.store import Commands, Status, Store
from pyrite.workload.system import processes
from pyrite.workload.system.alive import NOBODY, Identity
from pyrite.workload.system.copies import above_streams
from pyrite.workload.views.failures import raise_for_failures
from pyrite.workload.views.following import Piece, follow
from pyrite.workload.workers import launching
from pyrite.workload.workers.doing import load, run_command
from pyrite.workload.workers.launching import Launcher, Post

POLL_SECONDS = 0.1


def begin(
    plan: Plan,
    book: CommandBook,
    options: Options,
    *,
    store: str | os.PathLike[str] | None,
    executor: Executor | Callable[[], Executor] | None = None,
    launcher: Launcher | None = None,
) -> Run:
    """Starts a new run of a plan."""
    is_temporary = store is None
    place = Store(store if store is not None else tempfile.mkdtemp(prefix="pyrite-workload-"))
    place.make()
    lock = place.lock()
    try:
        status = _new_status(place, options)
        with place.explaining("write to"):
            place.write_status(
                status
            )  # first of all, so that the run can be resumed if this process is killed from here on
        journal = Journal(place)
        try:
            journal.catch_up()
            number = journal.plan + 1
            place.write_plan(number, plan, book)
            journal.begin(number, plan)
        finally:
            journal.close()
        return _start(
            place,
            options,
            status,
            lock,
            executor=executor,
            launcher=launcher,
            is_temporary=is_temporary,
        )
    except BaseException as error:
        _tell_that_it_broke(place, error)
        raise
    finally:
        os.close(lock)


def _tell_that_it_broke(store: Store, error: BaseException) -> None:
    status = store.status()
    if status is not None and status.phase == "starting":
        try:
            store.write_status(replace(status.broken_by(error), master=NOBODY))
        except OSError:
            pass


def _new_status(store: Store, options: Options) -> Status:
    earlier = store.status()
    return Status(
        "starting",
        Identity.here(),
        1 + (earlier.session if earlier is not None else 0),
        asdict(options),
        time.time(),
    )


def _start(
    store: Store,
    options: Options,
    status: Status,
    lock: int,
    *,
    executor: Executor | Callable[[], Executor] | None,
    launcher: Launcher | None,
    is_temporary: bool = False,
) -> Run:
    with store.explaining("write to"):
        if options.kind == "transient":
            running = replace(status, phase="running")
            master = TransientMaster(
                store, options, running, executor, lock=above_streams(os.dup(lock))
            )
            return Run(store.folder, _master=master, _is_temporary=is_temporary)
        return _start_apart(store, options, status, lock, launcher, is_temporary=is_temporary)


def _start_apart(
    store: Store,
    options: Options,
    status: Status,
    lock: int,
    launcher: Launcher | None,
    *,
    is_temporary: bool,
) -> Run:
    """Starts the master of persistent workers as a separate process."""
    config: dict[str, Any] = {"store": str(store), "options": asdict(options), "lock": lock}
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
        "masters.master", config, log=store.folder / "master.log", files=files, waits=True
    )
    assert process.stdin is not None
    try:
        store.write_status(replace(status, phase="running", master=Identity.of(process.pid)))
        process.stdin.write(word)
        process.stdin.flush()
    except BaseException:
        process.stdin.close()  # a master that gets no word to begin ends
        raise
    run = Run(store.folder, _process=process, _is_temporary=is_temporary)
    if launcher is None or listener is None:
        process.stdin.close()
        return run
    host, port = listener.getsockname()[:2]
    listener.close()
    path = tuple(map(str, sys.path))
    posts = [
        Post(n, str(store), f"{host}:{port}", path, launching.LIMITS, secret)
        for n in range(options.workers)
    ]
    launching.launch(launcher, posts, partial(_launcher_ended, store, process.stdin))
    return run


def _launcher_ended(store: Store, lifeline: IO[bytes], why: str) -> None:
    """Tells the master that no more workers will connect, by closing the pipe that it was started
    with."""
    try:
        if why:
            (store.folder / "launcher.error").write_text(why)
        lifeline.close()
    except OSError:
        pass


class Run:
    """A run of a workload. `Workload.run` returns one; `Run.attach` makes one from a store."""

    def __init__(
        self,
        store: str | os.PathLike[str],
        *,
        _process: subprocess.Popen[bytes] | None = None,
        _master: TransientMaster | None = None,
        _is_temporary: bool = False,
    ) -> None:
        self._store = Store(store)
        self._store.check_exists()
        number = read_plan_number(self._store)
        if not number:
            status = self._store.status()
            is_beginning = (
                status is not None and status.phase == "starting" and status.master.is_alive
            )
            why = (
                "is still starting; try again in a moment"
                if is_beginning
                else "was killed, or failed, before it started"
            )
            raise PyriteError(f"the run in '{self._store}' {why}")
        self._plan_number = number
        self._plan_folder = self._store.plan(number)
        self._first_plan = self._store.read_plan(number)
        self._set_plan([])
        self._process = _process
        self._session = self.status.session
        self._transient = _master
        self._final: tuple[int, dict[str, Entry]] | None = None
        if _process is not None:
            # Without this, the master would stay a zombie process if the user never waits for it.
            threading.Thread(target=_process.wait, name="workload master", daemon=True).start()
        if _is_temporary:
            weakref.finalize(self, _remove, self._store)

    @classmethod
    def attach(cls, store: str | os.PathLike[str]) -> Run:
        """The run in a store, whether it is running, has ended, or is broken. Works in any
        process."""
        return cls(store)

    @classmethod
    def resume(cls, store: str | os.PathLike[str], **changes: Any) -> Run:
        """Continues a run that was cancelled, broken or killed. Jobs that have a result do not run
        again.

        `changes` are options of `Workload.run`, such as `workers`, with new values. The other
        options stay as they were.
        """
        place = Store(store)
        place.check_exists()
        executor, launcher = changes.pop("executor", None), changes.pop("launcher", None)
        lock = place.lock()
        try:
            earlier = place.status()
            options = Options(**earlier.options) if earlier is not None else Options()
            options = checked(options.changed(changes), executor, launcher)
            journal = Journal(place)
            try:
                journal.catch_up()
            finally:
                journal.close()
            return _start(
                place,
                options,
                _new_status(place, options),
                lock,
                executor=executor,
                launcher=launcher,
            )
        finally:
            os.close(lock)

    # State and results

    @property
    def store(self) -> Path:
        return self._store.folder

    @property
    def status(self) -> Status:
        status = self._store.status()
        if status is None:
            raise PyriteError(f"the store '{self._store}' contains no run")
        return status

    @property
    def pid(self) -> int:
        """The process id of the master."""
        return self._master().pid

    @property
    def has_ended(self) -> bool:
        if self._transient is not None and self._session == self.status.session:
            return self._transient.has_ended
        return self.status.has_ended or not self._master().is_alive

    def wait(self, timeout: float | None = None, *, progress: bool | None = None) -> Run:
        """Waits until every job has ended, and returns the run. Failed jobs are in `failed()`; they
        raise nothing here.

        Raises RunBroken if the run itself could not continue, and TimeoutError if it has not ended
        after `timeout` seconds. In a terminal, shows the progress if that takes more than a second;
        `progress` turns this on or off. Ctrl-C stops the waiting, not the run.
        """
        from pyrite.workload.progress import wait_with_progress

        if not wait_with_progress(self, timeout, progress=progress):
            raise TimeoutError(
                f"the run in '{self._store}' has not ended within {timeout:g} s; it continues"
            )
        status = self.status
        if status.phase == "broken":
            raise RunBroken(f"{status.problem}. To continue, call Run.resume('{self._store}')")
        if not status.has_ended:
            raise RunBroken(
                f"the master of the run in '{self._store}' was killed before all jobs had ended"
                f"{self._last_words()}; to continue, call Run.resume('{self._store}')"
            )
        return self

    def wait_for_master(self, seconds: float | None) -> bool:
        """Waits up to `seconds` for the master to end. Returns whether it has ended."""
        if self._transient is not None and self._session == self.status.session:
            return self._transient.join(seconds)
        if self.status.options.get("kind") != "transient" and self.status.phase != "starting":
            return self._master().wait(seconds)
        # The master is a thread of another process, or the run is still starting there. That
        # process may live on after the run, so the status in the store has to be polled.
        give_up = inf if seconds is None else time.monotonic() + seconds
        while not self.has_ended:
            if time.monotonic() >= give_up or self._master().wait(
                min(POLL_SECONDS, give_up - time.monotonic())
            ):
                return self.has_ended
        return True

    def table(self) -> list[dict[str, Any]]:
        """A list with a dict per job, in the order of the workload: its state, the number of its
        last attempt, the worker, the times of start and end (in seconds since 1970), the duration,
        and the error."""
        return [row_of(id, entry) for id, entry in self._entries().items()]

    def counts(self) -> dict[JobState, int]:
        """The number of jobs in each state."""
        return dict(Counter(entry.state for entry in self._entries().values()))

    def failed(self) -> FailedJobs:
        """The rows of `table()` of the jobs that failed with an error, a crash or a timeout. `"job"
        in run.failed()` tells whether the job with this id failed."""
        return FailedJobs(row for row in self.table() if row["state"].is_failure)

    def raise_for_failures(self) -> Run:
        """Raises JobsFailed if jobs are not done: because they failed, or because they did not run
        (they are BLOCKED or CANCELLED, or the run was killed). Otherwise returns the run. Jobs that
        may still run do not count, so call `wait()` first: `run.wait().raise_for_failures()`."""
        raise_for_failures(self.table(), self.store, has_ended=self.has_ended)
        return self

    @property
    def results(self) -> Results:
        """The results by job id, for the jobs that have one. A result is read from the store when
        it is accessed."""
        return Results(self)

    def result_of(self, job: str) -> Any:
        """The result of a job. Raises NoResult if it has none; the message says why."""
        id = self._known(job)
        entry = self._entries()[id]
        if not entry.state.has_result:
            raise NoResult(
                f"job '{id}' has no result; its state is "
                f"{entry.state}{f' ({entry.error})' if entry.error else ''}"
            )
        if self._number[id] in self._plan.maps:
            entries = list(self._entries().values())
            places = list(result_places(self._plan, entries, self._number[id]))
            return decode(readers(self._store, places)[0]())
        assert entry.result_segment is not None
        assert entry.result_offset is not None
        return decode(read_result(self._store.segment(entry.result_segment), entry.result_offset))

    def log(self, job: str) -> str:
        """The output of the last attempt of the job."""
        entry = self._entries()[self._known(job)]
        if entry.segment is None:
            return ""
        path = self._store.log(entry.segment)
        if not path.exists():
            return ""
        with open(path, "rb") as file:
            file.seek(entry.log_start)
            end = None if entry.state is JobState.RUNNING else entry.log_end - entry.log_start
            return file.read(None if end is None else max(0, end)).decode(errors="replace")

    def follow(self, job: str) -> Iterator[Piece]:
        """The output of a job as it is written, until the job has ended. Each piece has the number
        of the `attempt` and its `text`. The job need not have started yet."""
        id = self._known(job)
        return follow(
            self._store, self._number[id], lambda: self._entries()[id], lambda: self.has_ended
        )

    def traceback(self, job: str) -> str:
        """The traceback of a job that failed; empty if it raised no exception."""
        entry = self._entries()[self._known(job)]
        if entry.segment is None or entry.offset is None or entry.state is not JobState.FAILED:
            return ""
        return read_error(self._store.segment(entry.segment), entry.offset)[1]

    def lengths(self) -> tuple[float, float]:
        """The duration of the run, and the length of its critical path: the chain of dependent jobs
        with the longest total duration. Both in seconds."""
        entries = list(self._entries().values())
        begins = [entry.started for entry in entries if entry.started is not None]
        ends = [entry.ended for entry in entries if entry.ended is not None]
        seconds = {
            n: entry.ended - entry.started
            if entry.started is not None and entry.ended is not None
            else 0.0
            for n, entry in enumerate(entries)
        }
        paths = remaining_paths(self._plan.order, self._plan.downstream, seconds)
        return (max(ends) - min(begins) if begins and ends else 0.0), max(paths, default=0.0)

    # Actions

    def cancel(self, timeout: float | None = 30.0) -> Run:
        """Cancels the run: stops the running jobs, starts no others, and waits until that is done.
        Existing results stay."""
        if self.has_ended:
            return self
        if self.status.phase == "starting":
            raise PyriteError(
                f"the run in '{self._store}' is still starting; try again in a moment"
            )
        if self._transient is not None and self._session == self.status.session:
            self._transient.cancel()
        elif self.status.options.get("kind") == "transient":
            self._store.cancel(self._session)
        else:
            self._master().signal(signal.SIGTERM)
        if not self.wait_for_master(timeout):
            raise TimeoutError(
                f"the run in '{self._store}' has not ended {timeout:g} s after it was cancelled"
            )
        return self

    def replay(self, job: str, *, debugger: bool = False) -> Any:
        """Runs one job again in this process, with the same results of its upstream jobs. Returns
        its return value, or raises its exception.

        Breakpoints in its code work. With `debugger=True`, an exception opens the debugger at the
        line that raised it. Nothing is written to the store.
        """
        id = self._known(job)
        entries = list(self._entries().values())
        plan, number = self._plan, self._number[id]
        try:
            inputs = readers(self._store, input_places(plan, entries, number))
        except NoPlace as missing:
            above = missing.args[0]
            raise NoResult(
                f"the upstream job '{plan.ids[above]}' has no result; its state is "
                f"{entries[above].state}"
            ) from None
        commands = Commands(self._plan_folder)
        try:
            command, args, kwargs = load(
                commands.bytes_of(
                    plan.maps[plan.branch[number][0]].blob if number in plan.branch else number
                ),
                lambda span: pickle.loads(commands.bytes_at(span)),
                inputs,
            )
        finally:
            commands.close()
        try:
            return run_command(command, args, kwargs)
        except Exception as error:
            if debugger:
                import pdb

                pdb.post_mortem(error.__traceback__)
            raise

    # Drawings

    def to_mermaid(self) -> str:
        """The graph of the jobs, with a colour for each state, as Mermaid text."""
        return drawing.mermaid(*self._picture())

    def to_dot(self) -> str:
        """The graph of the jobs, with a colour for each state, as Graphviz DOT text."""
        return drawing.dot(*self._picture())

    def to_svg(self) -> str:
        """The graph of the jobs, with a colour for each state, as an SVG document."""
        return drawing.svg(*self._picture())

    def _picture(self) -> tuple[list[drawing.Box], list[drawing.Arrow]]:
        boxes = [
            drawing.Box(id, str(entry.state), COLORS[entry.state])
            for id, entry in self._entries().items()
        ]
        return boxes, [drawing.Arrow(a, b) for a, b in self._plan.edges]

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {state}" for state, count in self.counts().items())
        return f"<Run in '{self._store}': {counts}>"

    # Internals

    def _entries(self) -> dict[str, Entry]:
        """The entries of all jobs. They are cached once the run has ended, because they cannot
        change then."""
        status = self.status
        if self._final is not None and self._final[0] == status.session:
            return self._final[1]
        is_over = self.has_ended
        plan, entries = read_entries(
            self._store, was_cut_short=is_over and status.phase not in ("ended", "cancelled")
        )
        if plan != self._plan_number:
            raise PyriteError(
                f"the store '{self._store}' now belongs to a newer run; to see that run, call "
                f"Run.attach('{self._store}')"
            )
        if self._plan.maps:
            self._add_branches(len(entries))
        if is_over and self.status.session == status.session:
            self._final = (status.session, entries)
        return entries

    def _add_branches(self, count: int) -> None:
        """Makes the plan have as many jobs as there are entries: branches may have been added to
        it."""
        extensions = read_extensions(self._store)
        while extensions and len(self._first_plan.ids) + sum(n for _, n in extensions) > count:
            extensions.pop()
        if extensions != self._extensions:
            self._set_plan(extensions)

    def _set_plan(self, extensions: list[tuple[int, int]]) -> None:
        self._extensions = extensions
        self._plan = extended(self._first_plan, extensions)
        self._number = {id: n for n, id in enumerate(self._plan.ids)}

    def _known(self, job: object) -> str:
        id = str(job)
        if id not in self._number and self._plan.maps:
            self._entries()
        if id not in self._number:
            near = difflib.get_close_matches(id, self._number, 1)
            raise NoResult(
                f"there is no job '{id}' in this "
                f"run{f'; did you mean {near[0]!r}?' if near else ''}"
            )
        return id

    def _master(self) -> Identity:
        return self.status.master

    def _last_words(self) -> str:
        """The last line of the master's log. It is empty unless the master itself has a bug."""
        path = self._store.folder / "master.log"
        lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
        return f" (the last line of its log: {lines[-1]})" if lines else ""


def _remove(store: Store) -> None:
    """Removes a temporary store, unless its run is still running."""
    status = store.status()
    if status is None or status.has_ended:
        shutil.rmtree(store.folder, ignore_errors=True)
