"""A workload: jobs from a table or from decorated functions, and the method that runs them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Literal, TypeVar, overload

from pyrite.errors import InvalidWorkload, PyriteError
from pyrite.functions import describe, shorten
from pyrite.workload.input.commands.command_book import CommandBook
from pyrite.workload.input.jobs.job import OPTIONS, Job
from pyrite.workload.input.jobs.making import after_parameters, make_job
from pyrite.workload.input.options import NO_OPTIONS, Options, checked
from pyrite.workload.input.part import Ids, Part, cut, selected
from pyrite.workload.input.plan import Plan
from pyrite.workload.input.planning import make_plan
from pyrite.workload.input.schedule import Schedule
from pyrite.workload.input.tables import as_columns, is_missing, without_garbage_collection
from pyrite.workload.run import Run
from pyrite.workload.scheduling.states import OnError
from pyrite.workload.starting import Supply, begin
from pyrite.workload.storage.store import Store
from pyrite.workload.views.forecast import forecast
from pyrite.workload.views.preview import Preview
from pyrite.workload.workers.launched.launching import Launcher

Function = TypeVar("Function", bound=Callable[..., Any])


class Workload:
    """A set of jobs. A job has an id and a command.

    A command is a function, a string `"package.module:function"`, a program as a list of its name
    and arguments, or a DAG. The options of a job are: `args` and `kwargs` for its function;
    `timeout` in seconds; `retries` after a failure or a timeout; `priority` (among the ready jobs,
    the one with the lowest number starts first); `pool` (a limit for the number of jobs of this
    pool that run at the same time); `light` (whether a DAG runs as a light job); `after`, the
    ids of upstream jobs; `inputs`, the upstream jobs whose results the parameters get; and `over`
    (see `map`).
    `retry_wait` is how long the job waits before a retry: a number of seconds, which doubles with
    each further retry, or a RetryWait. `files_in` and `files_out` are the paths of files and
    folders that the job reads and writes. `env` is a dict of environment variables, and `cwd` the
    working directory, which the job has while it runs. A `Secret("NAME")` in args, kwargs or env
    is replaced by an environment variable of the worker. `cpus` and `memory` (`"2 GB"`) are what
    the job needs: jobs run at the same time only as far as the cores and the memory of the machine
    suffice, and a job that uses more memory is stopped. `on_end` is a function that is called with
    the row of the job (as in `run.table()`) when the job has ended for good.

    If a parameter of the function has the name of an upstream job, it gets the result of that job.
    With `inputs={"day": "load-2024", "parts": ["a", "b"]}`, the parameter `day` gets the result of
    the job `load-2024`, and `parts` a list with the results of `a` and `b`. These are upstream jobs
    then; `after` need not name them.

    >>> workload = Workload()
    >>> @workload.job
    ... def numbers():
    ...     return [1, 2, 3]
    >>> @workload.job(retries=2)
    ... def total(numbers):
    ...     return sum(numbers)
    >>> workload
    <Workload of 2 jobs>
    """

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._by_parameters: set[int] = set()  # jobs whose parameters name their upstream jobs

    @classmethod
    @without_garbage_collection()
    def from_table(cls, table: Any) -> Workload:
        """Makes a workload from a table with the columns `job` and `command`, and optionally one
        column per option. The table is a list of dicts, a dict of columns, or a pandas, polars or
        Arrow table. Raises InvalidWorkload if the table is not valid."""
        columns = as_columns(table, what="workload", required=("job", "command"), optional=OPTIONS)
        workload = cls()
        ids = columns.pop("job")
        commands = columns.pop("command")
        problems: list[str] = []
        if set(map(type, ids)) == {str} and all(ids) and "".join(ids).isascii() and not columns:
            workload._jobs = list(map(Job, ids, commands))
            return workload
        rows = zip(*columns.values()) if columns else iter(() for _ in ids)
        for n, (id, command, values) in enumerate(zip(ids, commands, rows)):
            options = {name: value for name, value in zip(columns, values) if not is_missing(value)}
            try:
                workload._jobs.append(make_job(id, command, options))
            except ValueError as error:
                problems.append(f"row {n} of the workload: 'job' {error}")
        if problems:
            raise InvalidWorkload(problems)
        return workload

    def add(self, id: str, command: Any, **options: Any) -> Workload:
        """Adds a job and returns the workload. The options are listed in the docstring of the
        class."""
        unknown = [name for name in options if name not in OPTIONS]
        if unknown:
            raise TypeError(
                f"a job has no option '{unknown[0]}'; its options are {', '.join(OPTIONS)}"
            )
        try:
            self._jobs.append(make_job(id, command, options))
        except ValueError as error:
            raise InvalidWorkload([f"a job's id {error}"]) from None
        return self

    @overload
    def job(self, function: Function) -> Function: ...

    @overload
    def job(self, *, id: str | None = None, **options: Any) -> Callable[[Function], Function]: ...

    def job(self, function: Any = None, *, id: str | None = None, **options: Any) -> Any:
        """A decorator that makes a job of a function. Each parameter of the function is the id of
        an upstream job. A parameter with a default value need not name a job."""

        def make(function: Function) -> Function:
            name = id or getattr(function, "__name__", None)
            if not name:
                raise InvalidWorkload(
                    [f"{describe(function)} has no name; give an id: @workload.job(id='...')"]
                )
            self.add(name, function, **options)
            self._by_parameters.add(len(self._jobs) - 1)
            return function

        if function is None:
            return make
        if not callable(function):
            raise InvalidWorkload([f"@workload.job is for a function; got {shorten(function)}"])
        return make(function)

    def map(self, id: str, function: Any, *, over: str, **options: Any) -> Workload:
        """Adds a map and returns the workload: one job per element of the result of the job `over`.
        These jobs, the branches, are made when that result is known. Their ids are `score[0]`,
        `score[1]` and so on if `id` is `score`. The result of the map is the list of their results.

        The element goes to the first parameter of the function that gets no other value. As with
        the decorator, other parameters can be the ids of upstream jobs. The options apply to each
        branch. A branch is skipped if the same element was processed before and nothing else has
        changed.

        >>> workload = Workload().add("shards", lambda: [1, 2, 3])
        >>> workload.map("score", lambda shard: shard * 10, over="shards")
        <Workload of 2 jobs>
        """
        self.add(id, function, over=over, **options)
        self._by_parameters.add(len(self._jobs) - 1)
        return self

    def __len__(self) -> int:
        return len(self._jobs)

    def __repr__(self) -> str:
        return f"<Workload of {len(self._jobs)} jobs>"

    @property
    def jobs(self) -> list[Job]:
        """The jobs, each with the upstream jobs that it names itself."""
        if not self._by_parameters:
            return list(self._jobs)
        ids = {job.id for job in self._jobs}
        return [
            after_parameters(job, ids) if n in self._by_parameters else job
            for n, job in enumerate(self._jobs)
        ]

    def validate(
        self,
        schedule: Schedule | None = None,
        *,
        pools: Mapping[str, int] | None = None,
        cpus: float | None = None,
        memory: str | int | None = None,
        on_end: Any = None,
    ) -> None:
        """Checks the jobs and the schedule. Raises InvalidWorkload with a list of all problems."""
        options = checked(Options(pools=pools or {}, cpus=cpus, memory=memory))
        self._plan(schedule, options, on_end=on_end)

    def plan(
        self,
        store: str | os.PathLike[str],
        schedule: Schedule | None = None,
        *,
        pools: Mapping[str, int] | None = None,
        rerun: bool = False,
        only: Ids = None,
        from_: Ids = None,
        to: Ids = None,
    ) -> Preview:
        """What a run with this store would do, and why, without running anything: a table with an
        action per job, "run", "may run" or "skip", and the reasons.

        A job that "may run" is downstream of one that would run. It is skipped if that one has the
        same result as before. Nothing is written to the store. The options are those of `run`.
        """
        part = Part.of(only=only, from_=from_, to=to)
        if pools is None:  # their sizes do not matter here
            pools = {job.pool: 1 for job in self._jobs if isinstance(job.pool, str)}
        options = checked(Options(pools=pools, rerun=rerun))
        plan, _ = self._plan(schedule, options, part)
        return forecast(Store(store), plan, options)

    def run(
        self,
        schedule: Schedule | None = None,
        *,
        workers: int | None = None,
        kind: Literal["persistent", "transient"] = "persistent",
        store: str | os.PathLike[str] | None = None,
        on_error: OnError = "continue",
        crashes_max: int = 2,
        pools: Mapping[str, int] | None = None,
        rerun: bool = False,
        max_jobs: int = 1,
        executor: Executor | Callable[[], Executor] | None = None,
        launcher: Launcher | None = None,
        host: str = "127.0.0.1",
        cpus: float | None = None,
        memory: str | int | None = None,
        on_end: Callable[[Run], Any] | str | None = None,
        only: Ids = None,
        from_: Ids = None,
        to: Ids = None,
    ) -> Run:
        """Starts the jobs and returns at once. Without a schedule, a job depends only on the
        upstream jobs that it names itself.

        `workers` is the number of workers, by default one per core. A worker runs one job at a
        time. Persistent workers are processes that live until all jobs have ended. Their master is
        a separate process, so if there is a `store`, this interpreter may end before the run does.
        `launcher` starts persistent workers on other machines: it is any function that behaves like
        a parallel `map`.
        `host` is the address of this machine at which such workers connect to the master.
        Transient workers run `max_jobs` jobs each and are then replaced. This process starts them
        through `executor`, which is an executor or a function that makes one.

        `store` is the folder for results, logs and states. Give one to keep the results, to resume
        the run, and to skip jobs that are up to date the next time (unless `rerun` is True). The
        default is a temporary folder, which is removed when this interpreter ends; a run that has
        not ended by then is cancelled.

        `on_error` says what happens to the other jobs when a job has failed and has no retries left
        (see OnError). A job that kills its worker is tried again up to `crashes_max` times. `pools`
        is a dict of the number of jobs of each pool that may run at the same time. `cpus` and
        `memory` are what the running jobs with these options may use together, by default the cores
        and the memory of this machine.

        `on_end` is called with the Run when the run has ended in whatever way, unless its master
        was killed. It runs in a process of its own; its errors go to `hooks.log` in the store.

        `only`, `from_` and `to` are lists of ids that select a part of the jobs: exactly these,
        these and all downstream of them, or these and all upstream of them. With both `from_` and
        `to`, the jobs on the way from one to the other. The other jobs do not run. Their results
        stay in the store, and those that selected jobs need must be there. Selected jobs that are
        up to date are skipped, unless `rerun` is True.
        """
        _refuse_in_spawned_process()
        part = Part.of(only=only, from_=from_, to=to)
        options = checked(
            Options(
                workers=workers if workers is not None else os.cpu_count() or 1,
                kind=kind,
                on_error=on_error,
                crashes_max=crashes_max,
                max_jobs=max_jobs,
                pools=pools or {},
                rerun=rerun,
                host=host,
                cpus=cpus,
                memory=memory,
            ),
            executor,
            launcher,
        )
        plan, book = self._plan(schedule, options, part, on_end=on_end)
        return Run.of(begin(plan, book, options, store=store, supply=Supply(executor, launcher)))

    @without_garbage_collection()
    def _plan(
        self,
        schedule: Schedule | None,
        options: Options = NO_OPTIONS,
        part: Part | None = None,
        *,
        on_end: Any = None,
    ) -> tuple[Plan, CommandBook]:
        if schedule is not None and not isinstance(schedule, Schedule):
            raise InvalidWorkload(
                [
                    "schedule must be a Schedule, as in Schedule([('a', 'b')]); got "
                    f"{shorten(schedule)}"
                ]
            )
        plan, book = make_plan(self.jobs, schedule, options, on_end=on_end)
        return (plan, book) if part is None else cut(plan, book, selected(part, plan))


def _refuse_in_spawned_process() -> None:
    """A process that `multiprocessing` spawned in a job imports the user's script. If that ran the
    workload again, there would be no end of it."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and getattr(processes.current_process(), "_inheriting", False):
        raise PyriteError(
            "a process that multiprocessing started imports this script, which must not run the "
            "workload then; put the call of run() under `if __name__ == '__main__':`"
        )
