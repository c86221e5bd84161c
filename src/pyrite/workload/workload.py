"""The workload: the jobs, from a table or from decorated functions, and `run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from typing import Any, Literal, TypeVar, overload

from pyrite.errors import InvalidWorkload
from pyrite.functions import describe, shorten
from pyrite.workload.commands import parameters_of
from pyrite.workload.jobs import OPTIONS, Job
from pyrite.workload.launching import Launcher
from pyrite.workload.options import Options, checked
from pyrite.workload.plan import CommandBook, Plan, make_plan
from pyrite.workload.run import Run, begin
from pyrite.workload.schedule import Schedule
from pyrite.workload.states import OnError
from pyrite.workload.tables import as_columns, is_missing, job_id, without_garbage_collection

Function = TypeVar("Function", bound=Callable[..., Any])


class Workload:
    """A set of jobs, each an id and a command.

    A command is a function, a text `"package.module:function"`, a program as a list of its
    arguments, or a DAG. A job's options are `args` and `kwargs` for its function, `timeout` in
    seconds, `retries` after a failure or a timeout, `priority` (of the jobs that are ready, the
    lowest number goes first), `pool` (jobs of a pool run only so many at a time), `light` (for a
    DAG), and `after`, ids of upstream jobs.

    A function's parameters that are called like upstream jobs get their results.

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
        self._by_parameters: set[int] = set()  # the jobs whose parameters name their upstream jobs

    @classmethod
    @without_garbage_collection()
    def from_table(cls, table: Any) -> Workload:
        """From a table with the columns `job` and `command`, and any of the options: a list of
        dicts, a dict of columns, pandas, polars or Arrow. Raises InvalidWorkload if it is no such
        table."""
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
                workload._jobs.append(_job(job_id(id), command, options))
            except ValueError as error:
                problems.append(f"row {n} of the workload: 'job' {error}")
        if problems:
            raise InvalidWorkload(problems)
        return workload

    def add(self, id: str, command: Any, **options: Any) -> Workload:
        """Adds a job; returns the workload. Options are as in the class's description."""
        unknown = [name for name in options if name not in OPTIONS]
        if unknown:
            raise TypeError(f"a job has no option '{unknown[0]}'; it may have {', '.join(OPTIONS)}")
        try:
            self._jobs.append(_job(job_id(id), command, options))
        except ValueError as error:
            raise InvalidWorkload([f"a job's id {error}"]) from None
        return self

    @overload
    def job(self, function: Function) -> Function: ...

    @overload
    def job(self, *, id: str | None = None, **options: Any) -> Callable[[Function], Function]: ...

    def job(self, function: Any = None, *, id: str | None = None, **options: Any) -> Any:
        """Makes a job of the function below it. Its parameters are its upstream jobs; one with a
        default need not be a job."""

        def make(function: Function) -> Function:
            name = id or getattr(function, "__name__", None)
            if not name:
                raise InvalidWorkload(
                    [f"{describe(function)} has no name; give one: @workload.job(id='...')"]
                )
            self.add(name, function, **options)
            self._by_parameters.add(len(self._jobs) - 1)
            return function

        if function is None:
            return make
        if not callable(function):
            raise InvalidWorkload([f"@workload.job is for a function; got {shorten(function)}"])
        return make(function)

    def __len__(self) -> int:
        return len(self._jobs)

    def __repr__(self) -> str:
        return f"<Workload of {len(self._jobs)} jobs>"

    @property
    def jobs(self) -> list[Job]:
        """The jobs, with what they name as their upstream jobs."""
        if not self._by_parameters:
            return list(self._jobs)
        ids = {job.id for job in self._jobs}
        return [
            self._with_parameters(job, ids) if n in self._by_parameters else job
            for n, job in enumerate(self._jobs)
        ]

    def validate(
        self, schedule: Schedule | None = None, *, pools: Mapping[str, int] | None = None
    ) -> None:
        """Raises InvalidWorkload with everything that is wrong with the jobs and the schedule
        together."""
        self._plan(schedule, pools or {})

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
    ) -> Run:
        """Starts the jobs, and returns at once. Without a schedule, all those that name no upstream
        jobs are independent.

        `workers` do jobs at a time, by default one for each core. Persistent ones are processes
        that live until nothing is left. Their master is a process of its own, so this interpreter
        may end before the run does. `launcher` starts them elsewhere: it is anything that behaves
        like a parallel `map`; `host` is the address of this machine at which they reach the master.
        Transient ones are started for `max_jobs` jobs and then replaced, by this process, through
        `executor`: any executor, or a function that makes one.

        `store` is the folder with all that the run leaves: give it to keep the results, to resume,
        and to skip what is up to date next time (unless `rerun`). By default it is a temporary one.

        `on_error` says what a job that failed for good does to the others (see OnError); a job that
        kills its worker is tried `crashes_max` times more; `pools` gives how many jobs of each pool
        run at a time.
        """
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
            ),
            executor,
            launcher,
        )
        plan, book = self._plan(schedule, options.pools)
        return begin(plan, book, options, store=store, executor=executor, launcher=launcher)

    @without_garbage_collection()
    def _plan(
        self, schedule: Schedule | None, pools: Mapping[str, int]
    ) -> tuple[Plan, CommandBook]:
        if schedule is not None and not isinstance(schedule, Schedule):
            raise InvalidWorkload(
                [f"a schedule is made by Schedule.from_table(...); got {shorten(schedule)}"]
            )
        return make_plan(self.jobs, schedule, pools=pools)

    def _with_parameters(self, job: Job, ids: Iterable[str]) -> Job:
        parameters = parameters_of(job.command)
        given = {*parameters.positional[: len(job.args)], *job.kwargs}
        names = [
            name
            for name in (*parameters.positional, *sorted(parameters.named))
            if name in ids and name not in given and name != job.id
        ]
        return job._replace(after=tuple(dict.fromkeys([*job.after, *names])))


def _job(id: str, command: Any, options: dict[str, Any]) -> Job:
    for name in ("retries", "priority"):
        if name in options:
            options[name] = _whole(options[name])
    after = options.get("after")
    if after is not None:
        options["after"] = tuple(
            map(str, after if isinstance(after, (list, tuple, set, dict)) else [after])
        )
    if hasattr(options.get("args"), "tolist"):  # an array
        options["args"] = list(options["args"])
    return Job(id, command, **options)


def _whole(value: Any) -> Any:
    """Tables have whole numbers as floats, or as numbers of their own."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return (
        int(value)
        if not isinstance(value, (int, str, float)) and hasattr(value, "__index__")
        else value
    )
