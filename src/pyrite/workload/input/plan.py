"""The plan of a run: the jobs and the schedule, checked, with numbers instead of ids and with each
command as bytes.

All problems are found here, before any process starts, and are reported together.
"""

from __future__ import annotations

import difflib
import importlib.machinery
import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import cloudpickle

from pyrite.errors import InvalidWorkload, PyriteError
from pyrite.functions import message_of, shorten
from pyrite.workload.input.commands.command import (
    Call,
    Command,
    Parameters,
    Program,
    RunDag,
    describe_command,
    interpret,
    parameters_of,
)
from pyrite.workload.input.commands.command_book import CommandBook
from pyrite.workload.input.commands.large_data import LARGE, LargeData
from pyrite.workload.input.fingerprints import Fingerprints, digest
from pyrite.workload.input.fingerprints.arguments import Arguments
from pyrite.workload.input.fingerprints.files import JobFiles
from pyrite.workload.input.fingerprints.parts import in_folder, of_command, with_arguments
from pyrite.workload.input.fingerprints.survey import Survey
from pyrite.workload.input.fingerprints.words import possible_paths
from pyrite.workload.input.jobs.elements import elements_of
from pyrite.workload.input.jobs.inputs import Input, interpret_inputs
from pyrite.workload.input.jobs.job import NO_INPUTS, Job, option_problems, pool_problem
from pyrite.workload.input.jobs.maps import Element, Mapped, element_of, taken_ids
from pyrite.workload.input.jobs.settings import NO_SETTINGS, Settings, Totals, settings_of
from pyrite.workload.input.jobs.settings import totals as machine_totals
from pyrite.workload.input.jobs.within import NOTHING, within_of, wrap
from pyrite.workload.input.schedule import Schedule, find_cycle, in_order, upstream_of

NEAR_MAX = 10  # the number of unknown ids for which a similar one is suggested

_PLAIN = (int, str, float, bool, bytes, type(None))


@dataclass(frozen=True, slots=True)
class Plan:
    """Each list has one element per job, in the order of the workload. `passed` has the upstream
    jobs whose results are passed to the function of a job."""

    ids: list[str]
    upstream: list[list[int]]
    downstream: list[list[int]]
    order: list[int]
    priorities: list[int]
    retries: list[int]
    timeouts: list[float | None]
    pools: list[str | None]
    passed: list[tuple[int, ...]]
    fingerprints: list[bytes]
    programs: set[int]  # and DAGs with other sinks: their results do not tell what they did
    settings: dict[int, Settings]  # of the jobs that have any
    files: dict[int, JobFiles]  # of the jobs that name files
    parts: list[bytes]  # what each fingerprint was made of, packed
    hooks: dict[int, bytes]  # the functions to call when these jobs have ended
    given: frozenset[int] = frozenset()  # jobs that do not run: their earlier results are used
    left_out: frozenset[str] = frozenset()  # the jobs of the workload that are not in the plan
    maps: dict[int, Mapped] = field(default_factory=dict)
    branches: dict[int, range] = field(default_factory=dict)  # of the maps whose branches are known
    branch: dict[int, tuple[int, int]] = field(default_factory=dict)
    """For each branch, its map and the number of its element."""

    def blob_of(self, job: int) -> int:
        """The number of the command of a job in the command book. Branches share one."""
        return self.maps[self.branch[job][0]].blob if job in self.branch else job

    @property
    def edges(self) -> list[tuple[str, str]]:
        return [
            (self.ids[a], self.ids[b])
            for a, below in enumerate(self.downstream)
            for b in below
            # Between the upstream jobs of a map and the map itself are its branches.
            if not self.branches.get(b) or a in self.branches[b]
        ]


def make_plan(
    jobs: Sequence[Job],
    schedule: Schedule | None,
    *,
    pools: Mapping[str, int],
    totals: Totals | None = None,
    on_end: Any = None,
) -> tuple[Plan, CommandBook]:
    """Makes the plan. Raises InvalidWorkload with a list of all problems."""
    problems: list[str] = []
    ids, number = _numbered(jobs, problems)
    inputs, wrong = _inputs(jobs, problems)
    edges = _edges(jobs, number, schedule, inputs, problems)
    if not jobs:
        problems.append("the workload has no jobs")
    upstream, downstream = upstream_of(len(ids), edges)
    order = in_order(upstream, downstream)
    if len(order) < len(ids):
        cycle = find_cycle(upstream, set(range(len(ids))) - set(order))
        problems.append(f"the schedule has a cycle: {' -> '.join(ids[job] for job in cycle)}")
    wrong |= _option_problems(jobs, pools, totals or machine_totals(), problems)
    book = CommandBook()
    writer = _CommandWriter(book, problems)
    passed, fingerprints = [], []
    maps: dict[int, Mapped] = {}
    branch_spans: list[int] = []  # they follow those of the jobs
    for n, job in enumerate(jobs):
        if n in wrong:
            continue
        above = upstream[n]
        names = [ids[u] for u in above] if above else ()
        span, wanted, fingerprint = writer.write(n, job, names, inputs.get(n, ()))
        if not _is_plain_job(job):
            span, fingerprint = writer.surround(n, job, span, fingerprint)
        if n in writer.programs:
            fingerprint = writer.place(n, job, fingerprint)
        needed = tuple([number.get(name, -1) for name in wanted]) if wanted else ()
        if job.over is not None:
            over = number.get(job.over, -1)
            blob = len(jobs) + len(maps)
            files = writer.files.pop(n, None)
            if n in book.uses:
                book.uses[blob] = book.uses.pop(n)
            maps[n] = Mapped(over, blob, needed, fingerprint, job.timeout, files)
            branch_spans.extend(span)
            span, needed, fingerprint = writer.write_splitter(job.over), (over,), _SPLITTER
        book.spans.extend(span)
        passed.append(needed)
        fingerprints.append(fingerprint)
    problems.extend(
        f"the id '{id}' is taken: the map '{map}' makes jobs with such ids; give it another id"
        for id, map in (taken_ids(ids, {ids[n] for n in maps}) if maps else ())
    )
    hooks = {
        n: writer.hook(f"job '{job.id}' has on_end=", "the row of the job", job.on_end)
        for n, job in enumerate(jobs)
        if job.on_end is not None
    }
    if on_end is not None:
        book.on_end = writer.hook("the run has on_end=", "the Run", on_end)
    if problems:
        raise InvalidWorkload(problems)
    book.spans.extend(branch_spans)
    plan = Plan(
        ids=ids,
        upstream=upstream,
        downstream=downstream,
        order=order,
        priorities=[job.priority for job in jobs],
        retries=[job.retries for job in jobs],
        timeouts=[job.timeout if job.over is None else None for job in jobs],
        pools=[job.pool for job in jobs],
        passed=passed,
        fingerprints=fingerprints,
        programs=writer.programs,
        settings=_settings(jobs),
        files=writer.files,
        parts=list(writer.parts.values()),
        maps=maps,
        hooks=hooks,
    )
    return plan, book


def _settings(jobs: Sequence[Job]) -> dict[int, Settings]:
    found = {n: settings_of(job) for n, job in enumerate(jobs) if job[4:] != _DEFAULTS}
    return {n: settings for n, settings in found.items() if settings != NO_SETTINGS}


def _numbered(jobs: Sequence[Job], problems: list[str]) -> tuple[list[str], dict[str, int]]:
    ids = [job.id for job in jobs]
    number = {id: n for n, id in enumerate(ids)}
    if len(number) < len(ids):
        counts: dict[str, int] = {}
        for id in ids:
            counts[id] = counts.get(id, 0) + 1
        problems.extend(
            f"{count} jobs have the id '{id}'; ids must be unique"
            for id, count in counts.items()
            if count > 1
        )
    return ids, number


def _option_problems(
    jobs: Sequence[Job], pools: Mapping[str, int], totals: Totals, problems: list[str]
) -> set[int]:
    """The jobs with invalid options."""
    wrong = set()
    for n, job in enumerate(jobs):
        if _is_plain_job(job):
            continue
        found = option_problems(job)
        if isinstance(job.pool, str) and job.pool not in pools:
            found.append(pool_problem(job.pool))
        if not found:
            found = totals.problems(settings_of(job))
        if found:
            wrong.add(n)
            problems.extend(f"job '{job.id}' {problem}" for problem in found)
    return wrong


def _inputs(
    jobs: Sequence[Job], problems: list[str]
) -> tuple[dict[int, tuple[Input, ...]], set[int]]:
    """The inputs of the jobs that have any, and the jobs whose inputs are not valid."""
    found: dict[int, tuple[Input, ...]] = {}
    wrong = set()
    for n in [n for n, job in enumerate(jobs) if job.inputs is not NO_INPUTS]:
        try:
            found[n] = interpret_inputs(jobs[n].inputs)
        except ValueError as error:
            problems.append(f"job '{jobs[n].id}' {error}")
            wrong.add(n)
    return found, wrong


def _edges(
    jobs: Sequence[Job],
    number: Mapping[str, int],
    schedule: Schedule | None,
    inputs: Mapping[int, tuple[Input, ...]],
    problems: list[str],
) -> list[tuple[int, int]]:
    edges: dict[tuple[int, int], None] = {}
    if schedule is not None:
        unknown = [id for id in schedule.ids if id not in number]
        for n, id in enumerate(unknown):
            near = _near(id, number) if n < NEAR_MAX else ""
            problems.append(f"'{id}' is in the schedule but not in the workload{near}")
        for id in number:
            if id not in schedule.ids:
                problems.append(
                    f"'{id}' is in the workload but not in the schedule; for a job without "
                    f"dependencies, add a row with from='{id}' and to='{id}'"
                )
        edges = {
            (number[a], number[b]): None for a, b in schedule.edges if a in number and b in number
        }
    for n, job in enumerate(jobs):
        if not job.after and job.over is None:
            continue
        named = [("after", id) for id in job.after or ()]
        for option, id in [*named, ("over", job.over)] if isinstance(job.over, str) else named:
            if id not in number:
                near = _near(id, number) if len(problems) < NEAR_MAX else ""
                problems.append(
                    f"job '{job.id}' has {option}='{id}', but there is no such job{near}"
                )
            else:
                edges[number[id], n] = None
    for n, several in inputs.items():
        for one in several:
            for id in one.ids:
                if id not in number:
                    near = _near(id, number) if len(problems) < NEAR_MAX else ""
                    problems.append(
                        f"job '{jobs[n].id}' has inputs={{'{one.parameter}': ...}} with '{id}', "
                        f"but there is no such job{near}"
                    )
                else:
                    edges[number[id], n] = None
    return list(edges)


def _near(id: str, ids: Mapping[str, int]) -> str:
    near = difflib.get_close_matches(id, ids, 1) if len(ids) < 10_000 else []
    return f"; did you mean '{near[0]}'?" if near else ""


_Name = str | Input | Element
"""How a parameter gets the result of upstream jobs. A str is both the parameter and the job."""

_SPLITTER = digest(b"elements")
_DEFAULTS = Job("", None)[4:]  # of the options besides args and kwargs


def _is_plain_job(job: Job) -> bool:
    """Whether the job has no options besides plain arguments, so that there is little to check."""
    return (
        job[4:] == _DEFAULTS
        and type(job.args) in (list, tuple)
        and type(job.kwargs) is dict
        and all(map(_is_plain, job.args))
        and all(type(name) is str and _is_plain(value) for name, value in job.kwargs.items())
    )


class _CommandWriter:
    """Turns jobs into bytes. A function that many jobs share is checked and pickled only once."""

    def __init__(self, book: CommandBook, problems: list[str]) -> None:
        self.problems = problems
        self._book = book
        self._fingerprints = Fingerprints()
        self.programs: set[int] = set()
        self.files: dict[int, JobFiles] = {}
        self.parts: dict[int, bytes] = {}
        self._commands: dict[Any, _Known | str] = {}
        self._hooks: dict[int, bytes] = {}  # by id(); the jobs keep the functions alive
        self._kept: list[Any] = []  # kept alive, because id() of a command is part of a key
        self._plain: dict[tuple[Any, tuple[_Name, ...]], tuple[tuple[int, int], bytes]] = {}
        self._arguments = Arguments(self._fingerprints)

    def write(
        self, number: int, job: Job, upstream: Sequence[str], inputs: Sequence[Input]
    ) -> tuple[tuple[int, int], Sequence[str], bytes]:
        """Returns the span of the bytes of the job, the upstream jobs whose results it gets, and
        its fingerprint."""
        command = job.command
        key = (_key(command), job.light)
        known = self._commands.get(key)
        if known is None:
            self._kept.append(command)
            known = self._commands[key] = self._look_at(command, job.light)
        if isinstance(known, str):
            self.problems.append(f"the command of job '{job.id}' {known}")
            return (0, 0), (), b""
        if known.uses:
            self._book.uses[number] = known.uses
        self.parts[number] = known.parts
        if known.acts_outside:
            self.programs.add(number)
        if known.mentioned:
            self.files[number] = JobFiles(mentioned=known.mentioned)
        args, kwargs = job.args, job.kwargs
        wanted: Sequence[str] = ()
        parameters = known.parameters
        by_name = [one.parameter for one in inputs] if inputs else []
        element = None
        if job.over is not None:
            element = self._element(job, known, upstream, by_name)
            if element is None:
                return (0, 0), (), b""
            if element.is_positional:
                args = [*args, element]
            elif element.parameter is not None:
                by_name.append(element.parameter)
        if parameters is not None:
            if args or kwargs or by_name or parameters.required:
                self.problems.extend(
                    f"the command of job '{job.id}', {known.description}, {problem}"
                    for problem in parameters.problems(upstream, args, kwargs, by_name)
                )
            if upstream and parameters.named:
                given = {**kwargs, **dict.fromkeys(by_name)} if by_name else kwargs
                wanted = parameters.wanted(upstream, args, given)
        elif args or kwargs:
            self.problems.append(
                f"job '{job.id}' has args or kwargs, but its command, {known.description}, takes "
                "no arguments"
            )
        if inputs and parameters is None:
            self.problems.append(
                f"job '{job.id}' has inputs, but its command, {known.description}, has no "
                "parameters to get them; to run it after these jobs, give after=[...]"
            )
        names: tuple[_Name, ...] = tuple(wanted)
        if inputs:
            names = (*wanted, *inputs)
            wanted = [*wanted, *(id for one in inputs for id in one.ids)]
        if element is not None:
            names = (element, *names)
        if not job.args and not kwargs and not job.files_in and not job.files_out:
            found = self._plain.get((key, names))
            if found is None:
                blob = pickle.dumps((known.span, b"", names), protocol=5)
                found = self._plain[key, names] = (
                    self._book.put(blob),
                    digest(known.fingerprint, *sorted(map(_as_bytes, names))),
                )
            return found[0], wanted, found[1]
        span, fingerprint = self._write_with_arguments(number, job, known, names)
        return span, wanted, fingerprint

    def surround(
        self, number: int, job: Job, span: tuple[int, int], fingerprint: bytes
    ) -> tuple[tuple[int, int], bytes]:
        """Puts what is around the job in front of its bytes, if there is anything."""
        within = within_of(job)
        if within == NOTHING:
            return span, fingerprint
        if within.cwd is not None and number in self.files:
            self.files[number] = self.files[number].inside(within.cwd)
        counts = within.what_counts()
        return (
            self._book.put(wrap(bytes(self._book.data[slice(*span)]), within)),
            digest(fingerprint, counts) if counts else fingerprint,
        )

    def place(self, number: int, job: Job, fingerprint: bytes) -> bytes:
        """Adds the working directory of a program to its fingerprint: a program acts on it."""
        try:
            folder = digest(os.fsencode(os.path.abspath(job.cwd if job.cwd is not None else ".")))
        except OSError:  # the working directory of this process was removed
            folder = digest(b"")
        self.parts[number] = in_folder(self.parts[number], folder)
        return digest(fingerprint, folder)

    def hook(self, who: str, argument: str, value: Any) -> bytes:
        """A function that is called at an end, pickled. `argument` is what it gets."""
        known = self._hooks.get(id(value))
        if known is not None:
            return known
        try:
            call = interpret(value)
            if not isinstance(call, Call):
                raise ValueError("must be a function or a string 'package.module:function'")
            for problem in parameters_of(call.function).problems((), (None,), {}):
                raise ValueError(f"is called with one argument, {argument}, but it {problem}")
            if call.reference is None:
                _travel_by_value(call.function)
            self._hooks[id(value)] = cloudpickle.dumps(call, protocol=5)
        except ValueError as error:
            self.problems.append(f"{who}{shorten(value)}, which {error}")
        except Exception as error:
            self.problems.append(
                f"{who}{shorten(value)}, which cannot be pickled: {message_of(error)}"
            )
        return self._hooks.get(id(value), b"")

    def _write_with_arguments(
        self, number: int, job: Job, known: _Known, names: tuple[_Name, ...]
    ) -> tuple[tuple[int, int], bytes]:
        given = (tuple(job.args), dict(job.kwargs))
        try:
            if not given[0] and not given[1]:
                arguments = b""
            elif all(map(_is_plain, given[0])) and all(map(_is_plain, given[1].values())):
                arguments = pickle.dumps(given, protocol=5)
            else:
                arguments, _, uses = self._book.large.pickle(given)
                if uses:
                    self._book.uses[number] = [*known.uses, *uses]
        except Exception as error:
            self.problems.append(
                f"the arguments of job '{job.id}' cannot be pickled: {message_of(error)}"
            )
            return (0, 0), b""
        positional = known.parameters.positional if known.parameters is not None else ()
        looked = self._arguments.look(*given, positional)
        self.parts[number] = with_arguments(known.parts_of_command, looked.parts, looked.reasons)
        if looked.paths or job.files_in or job.files_out:
            inputs, outputs = tuple(map(str, job.files_in)), tuple(map(str, job.files_out))
            self.files[number] = JobFiles(
                known.mentioned, tuple(looked.paths), inputs, outputs, tuple(looked.paths.values())
            )
        blob = pickle.dumps((known.span, arguments, names), protocol=5)
        fingerprint = digest(known.fingerprint, looked.hashed, *sorted(map(_as_bytes, names)))
        return self._book.put(blob), fingerprint

    def _element(
        self, job: Job, known: _Known, upstream: Sequence[str], by_name: Sequence[str]
    ) -> Element | None:
        """The parameter that gets the element of a map."""
        assert job.over is not None
        if known.parameters is None:
            self.problems.append(
                f"job '{job.id}' has over='{job.over}', but its command, {known.description}, is "
                "not a function"
            )
            return None
        others = [id for id in upstream if id != job.over]
        given = {*job.kwargs, *by_name, *others}
        element = element_of(job.over, known.parameters, job.args, given)
        if element is None:
            self.problems.append(
                f"the command of job '{job.id}', {known.description}, has no parameter that is "
                f"free for the element of '{job.over}'"
            )
        return element

    def write_splitter(self, over: str) -> tuple[int, int]:
        """The span of the command that takes the result of a job apart."""
        command = self._book.put(pickle.dumps(Call(elements_of), protocol=5))
        arguments = pickle.dumps(((), {"job": over}), protocol=5)
        names = (Input("result", (over,), is_single=True),)
        return self._book.put(pickle.dumps((command, arguments, names), protocol=5))

    def _look_at(self, value: Any, light: bool) -> _Known | str:
        """Checks and pickles a command. Returns the end of a sentence if it is not valid."""
        try:
            command = interpret(value, light=light)
        except ValueError as error:
            return str(error)
        if isinstance(command, RunDag):
            try:
                command.dag.validate()
            except PyriteError as error:
                return f"is a DAG that is not valid: {error}"
        description = describe_command(command)
        if isinstance(command, Program):
            words = [word.encode(errors="surrogateescape") for word in command.argv]
            survey = Survey(digest(b"program", *words))
        else:
            survey = self._fingerprints.survey(command)
        try:
            data, uses = _pickled(command, self._book.large)
        except _Unserializable as error:
            return f"cannot be pickled: {error}"
        except Exception as error:
            return f"cannot be pickled: {description} raised {message_of(error)}"
        parameters = parameters_of(command.function) if isinstance(command, Call) else None
        parts = of_command(_name_of(command, description), survey)
        return _Known(
            self._book.put(data),
            uses,
            survey.digest,
            parts,
            with_arguments(parts),
            parameters,
            description,
            possible_paths(command.argv) if isinstance(command, Program) else (),
            isinstance(command, Program) or (isinstance(command, RunDag) and command.acts_outside),
        )


def _name_of(command: Command, description: str) -> str:
    """The name of a command among the parts of its fingerprint."""
    function = command.function if isinstance(command, Call) else None
    name = getattr(function, "__qualname__", None)
    return f"function {getattr(function, '__module__', '')}.{name}" if name else description


@dataclass(frozen=True, slots=True)
class _Known:
    span: tuple[int, int]
    uses: list[str]
    fingerprint: bytes
    parts_of_command: bytes
    parts: bytes
    parameters: Parameters | None
    description: str
    mentioned: tuple[str, ...]  # of a program: what may be paths among its words
    acts_outside: bool


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return kind in _PLAIN and (kind not in (str, bytes) or len(value) < LARGE)


def _as_bytes(name: _Name) -> bytes:
    return name.encode() if isinstance(name, str) else repr(tuple(name)).encode()


def _key(command: Any) -> Any:
    """The key under which a command is remembered. Functions that the same `lambda` in a loop made,
    with no closure or defaults, have the same key, so that only one of them is checked."""
    if (
        type(command) is FunctionType
        and command.__closure__ is None
        and not command.__defaults__
        and not command.__kwdefaults__
        and not command.__dict__
    ):
        return (id(command.__code__), id(command.__globals__))
    return command if isinstance(command, str) else id(command)


class _Unserializable(Exception):
    pass


def _pickled(command: Command, large: LargeData) -> tuple[bytes, list[str]]:
    """The command as bytes, and the names of its large data."""
    if isinstance(command, Program):
        return pickle.dumps(command, protocol=5), []
    if isinstance(command, RunDag):
        from pyrite.exchange.serializable import check_serializable

        try:
            check_serializable(command.dag)
        except PyriteError as error:
            raise _Unserializable(str(error)) from None
    if isinstance(command, Call) and command.reference is None:
        _travel_by_value(command.function)
    return large.pickle_command(command)


def _travel_by_value(function: Callable[..., Any]) -> None:
    """Makes cloudpickle pickle the functions of a module by value if no other process could import
    the module."""
    name = getattr(function, "__module__", None)
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None or name is None or name == "__main__":
        return
    top = name.partition(".")[0]
    if top in sys.builtin_module_names or importlib.machinery.PathFinder.find_spec(top) is not None:
        return
    cloudpickle.register_pickle_by_value(module)
