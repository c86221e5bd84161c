"""The handle of a run: waits for it, looks in, cancels it, gives results. It holds nothing but the
store, so any process can have one."""

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
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import asdict, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import IO, Any

from pyrite import drawing
from pyrite.errors import PyriteError, RunBroken
from pyrite.workload import launching, processes
from pyrite.workload.alive import NOBODY, Identity
from pyrite.workload.copies import above_streams
from pyrite.workload.doing import load, run_command
from pyrite.workload.journal import Entry, Journal, read_entries, read_plan_number
from pyrite.workload.launching import Launcher, Post
from pyrite.workload.options import Options, checked
from pyrite.workload.outcomes import COLORS, FailedJobs, NoResult, Results, row_of
from pyrite.workload.plan import CommandBook, Plan
from pyrite.workload.queues import SqliteQueue
from pyrite.workload.results import decode
from pyrite.workload.schedule import remaining_paths
from pyrite.workload.segments import read_error, read_result
from pyrite.workload.states import JobState
from pyrite.workload.store import Commands, Status, Store
from pyrite.workload.transient import CONTROL, TransientMaster

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
    """Starts a run of a new plan."""
    is_temporary = store is None
    place = Store(store if store is not None else tempfile.mkdtemp(prefix="pyrite-workload-"))
    place.make()
    lock = place.lock()
    try:
        status = _new_status(place, options)
        with place.explaining("write to"):
            place.write_status(
                status
            )  # before anything changes: who is killed meanwhile leaves a run that can be resumed
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
    """The master as a process of its own."""
    config: dict[str, Any] = {"store": str(store), "options": asdict(options), "lock": lock}
    files = [lock]
    word = b"go"
    listener = None
    if launcher is not None:
        listener, word = launching.listen(options.host)
        config["listener"] = listener.fileno()
        files.append(listener.fileno())
        (store.folder / "launcher.error").unlink(missing_ok=True)
    process = processes.start(
        "master", config, log=store.folder / "master.log", files=files, waits=True
    )
    assert process.stdin is not None
    try:
        store.write_status(replace(status, phase="running", master=Identity.of(process.pid)))
        process.stdin.write(word)
        process.stdin.flush()
    except BaseException:
        process.stdin.close()  # without the word, it goes
        raise
    run = Run(store.folder, _process=process, _is_temporary=is_temporary)
    if launcher is None or listener is None:
        process.stdin.close()
        return run
    host, port = listener.getsockname()[:2]
    listener.close()
    posts = [
        Post(n, str(store), host, port, word, tuple(map(str, sys.path)))
        for n in range(options.workers)
    ]
    launching.launch(launcher, posts, partial(_launcher_ended, store, process.stdin))
    return run


def _launcher_ended(store: Store, lifeline: IO[bytes], why: str) -> None:
    """Tells the master that no worker will come any more: it watches the pipe by which it was told
    to begin."""
    try:
        if why:
            (store.folder / "launcher.error").write_text(why)
        lifeline.close()
    except OSError:
        pass


class Run:
    """Made by `Workload.run`, or by `Run.attach` from the store of a run."""

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
                "is just beginning; look again in a moment"
                if is_beginning
                else "was killed, or broke, before it began"
            )
            raise PyriteError(f"the run in '{self._store}' {why}")
        self._plan_number = number
        self._plan_folder = self._store.plan(number)
        self._plan = self._store.read_plan(number)
        self._number = {id: n for n, id in enumerate(self._plan.ids)}
        self._process = _process
        self._session = self.status.session
        self._transient = _master
        self._final: tuple[int, dict[str, Entry]] | None = None
        if _process is not None:
            # The system keeps a process that ended until somebody asks how; the user may never.
            threading.Thread(target=_process.wait, name="workload master", daemon=True).start()
        if _is_temporary:
            weakref.finalize(self, _remove, self._store)

    @classmethod
    def attach(cls, store: str | os.PathLike[str]) -> Run:
        """The run in a store, whether it is under way, over, or broken; from any process."""
        return cls(store)

    @classmethod
    def resume(cls, store: str | os.PathLike[str], **changes: Any) -> Run:
        """Goes on with a run that was cancelled, broken or killed: jobs that have a result are not
        run again.

        `changes` are options of `Workload.run`, as `workers`, that shall differ from what the run
        had.
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
                journal.forget_messages()
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

    # How it stands

    @property
    def store(self) -> Path:
        return self._store.folder

    @property
    def status(self) -> Status:
        status = self._store.status()
        if status is None:
            raise PyriteError(f"the store '{self._store}' has no run in it")
        return status

    @property
    def pid(self) -> int:
        """The process of the master."""
        return self._master().pid

    @property
    def has_ended(self) -> bool:
        if self._transient is not None and self._session == self.status.session:
            return self._transient.has_ended
        return self.status.has_ended or not self._master().is_alive

    def wait(self, timeout: float | None = None, *, progress: bool | None = None) -> Run:
        """Waits until every job has ended; returns the run. A job that failed is in `failed()`:
        nothing is raised for it.

        Raises RunBroken if the run itself could not go on, and TimeoutError if it has not ended in
        time. In a terminal, how far it is is shown if it takes more than a second; `progress` says
        whether to do that. Ctrl-C ends the waiting, not the run.
        """
        from pyrite.workload.progress import wait_with_progress

        if not wait_with_progress(self, timeout, progress=progress):
            raise TimeoutError(
                f"the run in '{self._store}' has not ended within {timeout:g} s; it goes on"
            )
        status = self.status
        if status.phase == "broken":
            raise RunBroken(f"{status.problem}. Go on with Run.resume('{self._store}')")
        if not status.has_ended:
            raise RunBroken(
                f"the master of the run in '{self._store}' was killed before all jobs had ended"
                f"{self._last_words()}; go on with Run.resume('{self._store}')"
            )
        return self

    def wait_for_master(self, seconds: float | None) -> bool:
        """Whether the master is gone, or goes within that time."""
        if self._transient is not None and self._session == self.status.session:
            return self._transient.join(seconds)
        if self.status.options.get("kind") != "transient" and self.status.phase != "starting":
            return self._master().wait(seconds)
        # The master is, or the run is started by, a thread of a process that may go on: only what
        # it writes down tells.
        give_up = inf if seconds is None else time.monotonic() + seconds
        while not self.has_ended:
            if time.monotonic() >= give_up or self._master().wait(
                min(POLL_SECONDS, give_up - time.monotonic())
            ):
                return self.has_ended
        return True

    def table(self) -> list[dict[str, Any]]:
        """A dict for each job, in the order of the workload: its state, the last try of it, on
        which worker, when (in seconds since 1970), how long it took, and why it failed."""
        return [row_of(id, entry) for id, entry in self._entries().items()]

    def counts(self) -> dict[JobState, int]:
        """How many jobs are in each state."""
        return dict(Counter(entry.state for entry in self._entries().values()))

    def failed(self) -> FailedJobs:
        """The rows of `table()` whose jobs failed: with an error, a crash or a timeout. `"job" in
        run.failed()` asks for an id."""
        return FailedJobs(row for row in self.table() if row["state"].is_failure)

    @property
    def results(self) -> Results:
        """The results of the jobs that have one, by id, read when they are asked for."""
        return Results(self)

    def result_of(self, job: str) -> Any:
        """The result of a job. Raises NoResult, which says why there is none."""
        id = self._known(job)
        entry = self._entries()[id]
        if not entry.state.has_result:
            raise NoResult(
                f"job '{id}' has no result: it is "
                f"{entry.state}{f' ({entry.error})' if entry.error else ''}"
            )
        assert entry.result_segment is not None
        assert entry.result_offset is not None
        return decode(read_result(self._store.segment(entry.result_segment), entry.result_offset))

    def log(self, job: str) -> str:
        """What the job printed in its last try."""
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

    def traceback(self, job: str) -> str:
        """The traceback of a job that failed; empty if it raised nothing."""
        entry = self._entries()[self._known(job)]
        if entry.segment is None or entry.offset is None or entry.state is not JobState.FAILED:
            return ""
        return read_error(self._store.segment(entry.segment), entry.offset)[1]

    def lengths(self) -> tuple[float, float]:
        """How long the run took, and its critical path: the longest chain of jobs, by what each
        took. In seconds."""
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

    # What to do about it

    def cancel(self, timeout: float | None = 30.0) -> Run:
        """Ends the jobs that run, starts no other, and waits until that is so. Results that are
        there stay."""
        if self.has_ended:
            return self
        if self.status.phase == "starting":
            raise PyriteError(
                f"the run in '{self._store}' is just beginning; cancel it in a moment"
            )
        if self._transient is not None and self._session == self.status.session:
            self._transient.cancel()
        elif self.status.options.get("kind") == "transient":
            with SqliteQueue(self._store.journal, CONTROL) as queue:
                queue.put(b"cancel")
        else:
            self._master().signal(signal.SIGTERM)
        if not self.wait_for_master(timeout):
            raise TimeoutError(
                f"the run in '{self._store}' has not ended {timeout:g} s after it was cancelled"
            )
        return self

    def replay(self, job: str, *, debugger: bool = False) -> Any:
        """Runs one job again, in this process, with the results that it was given; returns what it
        returns, raises what it raises.

        Breakpoints in its code work; with `debugger`, an exception opens the debugger where it was
        raised. Nothing is recorded.
        """
        id = self._known(job)
        entries = self._entries()
        commands = Commands(self._plan_folder)
        number = self._number[id]

        def reader(above: str) -> Any:
            def read() -> Any:
                entry = entries[above]
                if entry.result_segment is None or entry.result_offset is None:
                    raise NoResult(f"it has none: it is {entry.state}")
                return read_result(self._store.segment(entry.result_segment), entry.result_offset)

            return read

        try:
            inputs = [reader(self._plan.ids[above]) for above in self._plan.passed[number]]
            command, args, kwargs = load(
                commands.bytes_of(number),
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

    # Pictures

    def to_mermaid(self) -> str:
        """The graph of the jobs, coloured by state, in Mermaid's language."""
        return drawing.mermaid(*self._picture())

    def to_dot(self) -> str:
        """The graph of the jobs, coloured by state, in Graphviz' language."""
        return drawing.dot(*self._picture())

    def to_svg(self) -> str:
        """The graph of the jobs, coloured by state, as an SVG document."""
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

    # How it comes about

    def _entries(self) -> dict[str, Entry]:
        """What is known of the jobs. Once the run is over this does not change any more, and is
        kept."""
        status = self.status
        if self._final is not None and self._final[0] == status.session:
            return self._final[1]
        is_over = self.has_ended
        plan, entries = read_entries(
            self._store, was_cut_short=is_over and status.phase not in ("ended", "cancelled")
        )
        if plan != self._plan_number:
            raise PyriteError(
                f"another run has taken the store '{self._store}'; look at it with "
                f"Run.attach('{self._store}')"
            )
        if is_over and self.status.session == status.session:
            self._final = (status.session, entries)
        return entries

    def _known(self, job: object) -> str:
        id = str(job)
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
        """What the master printed before it died: nothing, unless there is a fault in it."""
        path = self._store.folder / "master.log"
        lines = path.read_text(errors="replace").strip().splitlines() if path.exists() else []
        return f" (it said: {lines[-1]})" if lines else ""


def _remove(store: Store) -> None:
    """Removes a temporary store, unless its run is under way still."""
    status = store.status()
    if status is None or status.has_ended:
        shutil.rmtree(store.folder, ignore_errors=True)
