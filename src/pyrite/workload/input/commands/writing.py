"""Turns the jobs of a workload into bytes and fingerprints. A function that many jobs share is
checked and pickled only once."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

from pyrite.errors import PyriteError
from pyrite.functions import message_of
from pyrite.workload.input.commands.command import (
    Call,
    Command,
    Program,
    RunDag,
    describe_command,
    interpret,
)
from pyrite.workload.input.commands.command_book import CommandBook
from pyrite.workload.input.commands.large_data import LARGE, LargeData
from pyrite.workload.input.commands.parameters import Parameters, parameters_of
from pyrite.workload.input.commands.pickling import travel_by_value
from pyrite.workload.input.fingerprints import SIZE, Fingerprints, digest
from pyrite.workload.input.fingerprints.arguments import Arguments, Looked
from pyrite.workload.input.fingerprints.files import JobFiles
from pyrite.workload.input.fingerprints.parts import in_folder, of_command, with_arguments
from pyrite.workload.input.fingerprints.survey import Survey
from pyrite.workload.input.fingerprints.words import possible_paths
from pyrite.workload.input.jobs.inputs import Input
from pyrite.workload.input.jobs.job import Job
from pyrite.workload.input.jobs.maps import Element, element_of
from pyrite.workload.input.jobs.within import NOTHING, within_of, wrap

_Name = str | Input | Element
"""How a parameter gets the result of upstream jobs. A str is both the parameter and the job."""

Span = tuple[int, int]

_PLAIN = (int, str, float, bool, bytes, type(None))


class CommandWriter:
    """Turns jobs into bytes. A function that many jobs share is checked and pickled only once."""

    def __init__(self, book: CommandBook, problems: list[str]) -> None:
        self.problems = problems
        self._book = book
        self._fingerprints = Fingerprints()
        self.programs: set[int] = set()
        self.files: dict[int, JobFiles] = {}
        self.parts: dict[int, bytes] = {}
        self._commands: dict[Any, _Known | str] = {}
        self._folders: dict[str, bytes] = {}  # digests of working directories of programs
        self._kept: list[Any] = []  # kept alive, because id() of a command is part of a key
        self._plain: dict[tuple[Any, tuple[_Name, ...]], tuple[Span, bytes]] = {}
        self._arguments = Arguments(self._fingerprints)

    def write(
        self,
        number: int,
        job: Job,
        upstream: Sequence[str],
        inputs: Sequence[Input],
        *,
        is_plain: bool,
    ) -> tuple[Span, Sequence[str], bytes]:
        """Returns the span of the bytes of the job, the upstream jobs whose results it gets, and
        its fingerprint. A plain job has no options besides plain arguments."""
        key = (_key(job.command), job.light)
        known = self._commands.get(key)
        if known is None:
            self._kept.append(job.command)
            known = self._commands[key] = self._look_at(job.command, job.light)
        if isinstance(known, str):
            self.problems.append(f"the command of job '{job.id}' {known}")
            return (0, 0), (), b""
        if known.uses:
            self._book.uses[number] = known.uses
        self.parts[number] = known.parts
        if known.mentioned:
            self.files[number] = JobFiles(mentioned=known.mentioned)
        names, wanted = self._results(job, known, upstream, inputs)
        if not job.args and not job.kwargs and not job.files_in and not job.files_out:
            found = self._plain.get((key, names))
            if found is None:
                blob = pickle.dumps((known.span, b"", names), protocol=5)
                found = self._plain[key, names] = (
                    self._book.put(blob),
                    digest(known.fingerprint, *sorted(map(_as_bytes, names))),
                )
            span, fingerprint = found
        else:
            span, fingerprint = self._write_with_arguments(number, job, known, names)
        if not is_plain:
            span, fingerprint = self._surround(number, job, span, fingerprint)
        if known.acts_outside:
            self.programs.add(number)
            fingerprint = self._place(number, job, fingerprint)
        return span, wanted, fingerprint

    def _results(
        self, job: Job, known: _Known, upstream: Sequence[str], inputs: Sequence[Input]
    ) -> tuple[tuple[_Name, ...], Sequence[str]]:
        """How the command gets the results of upstream jobs, and which these are."""
        parameters, args, kwargs = known.parameters, job.args, job.kwargs
        if parameters is None:
            self.problems.extend(
                f"job '{job.id}' has {option}, but its command, {known.description}, {problem}"
                for option, problem in _options_of_functions(job, inputs)
            )
            return (), ()
        by_name = [one.parameter for one in inputs] if inputs else []
        element = None
        if job.over is not None:
            others = [id for id in upstream if id != job.over]
            element = element_of(job.over, parameters, args, {*kwargs, *by_name, *others})
            if element is None:
                self.problems.append(
                    f"the command of job '{job.id}', {known.description}, has no parameter that is "
                    f"free for the element of '{job.over}'"
                )
                return (), ()
            if element.is_positional:
                args = [*args, element]
            elif element.parameter is not None:
                by_name.append(element.parameter)
        if args or kwargs or by_name or parameters.required:
            self.problems.extend(
                f"the command of job '{job.id}', {known.description}, {problem}"
                for problem in parameters.problems(upstream, args, kwargs, by_name)
            )
        wanted = parameters.wanted(upstream, args, (*kwargs, *by_name)) if upstream else ()
        if not inputs and element is None:
            return wanted, wanted
        first = () if element is None else (element,)
        passed = (*wanted, *(id for one in inputs for id in one.ids))
        return (*first, *wanted, *inputs), passed

    def _surround(
        self, number: int, job: Job, span: Span, fingerprint: bytes
    ) -> tuple[Span, bytes]:
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

    def _place(self, number: int, job: Job, fingerprint: bytes) -> bytes:
        """Adds the working directory of a program to its fingerprint: a program acts on it."""
        cwd = os.fspath(job.cwd) if job.cwd is not None else "."
        folder = self._folders.get(cwd)
        if folder is None:
            try:
                folder = digest(os.fsencode(os.path.abspath(cwd)))
            except OSError:  # the working directory of this process was removed
                folder = digest(b"")
            self._folders[cwd] = folder
        self.parts[number] = in_folder(self.parts[number], folder)
        return digest(fingerprint, folder)

    def _write_with_arguments(
        self, number: int, job: Job, known: _Known, names: tuple[_Name, ...]
    ) -> tuple[Span, bytes]:
        given = (tuple(job.args), dict(job.kwargs))
        try:
            if not given[0] and not given[1]:
                arguments = b""
            elif all(map(is_plain, given[0])) and all(map(is_plain, given[1].values())):
                arguments = pickle.dumps(given, protocol=5)
            else:
                arguments, uses = self._book.large.pickle(given)
                if uses:
                    self._book.uses[number] = [*known.uses, *uses]
        except Exception as error:
            self.problems.append(
                f"the arguments of job '{job.id}' cannot be pickled: {message_of(error)}"
            )
            return (0, 0), b""
        positional = known.parameters.positional if known.parameters is not None else ()
        looked = self._arguments.look(*given, positional)
        span = known.span
        if looked.modules:
            looked, span = self._note_sources(looked, known)
        self.parts[number] = with_arguments(known.parts_of_command, looked.parts, looked.reasons)
        if looked.paths or job.files_in or job.files_out:
            inputs, outputs = tuple(map(str, job.files_in)), tuple(map(str, job.files_out))
            self.files[number] = JobFiles(
                known.mentioned, tuple(looked.paths), inputs, outputs, tuple(looked.paths.values())
            )
        blob = pickle.dumps((span, arguments, names), protocol=5)
        fingerprint = digest(known.fingerprint, looked.hashed, *sorted(map(_as_bytes, names)))
        return self._book.put(blob), fingerprint

    def _note_sources(self, looked: Looked, known: _Known) -> tuple[Looked, tuple[int, ...]]:
        """Adds the sources of classes and functions among the arguments to those of the command."""
        noted = self._book.sources.note(known.modules | looked.modules)
        more = tuple([reason for reason in noted.reasons if reason not in known.stale])
        if more:
            looked = replace(looked, hashed=os.urandom(SIZE), reasons=(*looked.reasons, *more))
        return looked, (*known.span[:2], noted.number)

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
        except PyriteError as error:
            return f"cannot be pickled: {error}"
        except Exception as error:
            return f"cannot be pickled: {description} raised {message_of(error)}"
        span: tuple[int, ...] = self._book.put(data)
        stale: tuple[str, ...] = ()
        if survey.modules:
            set_of_sources, stale = self._book.sources.note(survey.modules)
            span = (*span, set_of_sources)
        if stale:
            reasons = (*survey.reasons, *stale)
            survey = replace(survey, digest=os.urandom(SIZE), reasons=reasons)
        parameters = parameters_of(command.function) if isinstance(command, Call) else None
        parts = of_command(_name_of(command, description), survey)
        return _Known(
            span,
            uses,
            survey.digest,
            parts,
            with_arguments(parts),
            parameters,
            description,
            possible_paths(command.argv) if isinstance(command, Program) else (),
            isinstance(command, Program) or (isinstance(command, RunDag) and command.acts_outside),
            survey.modules,
            stale,
        )


def _name_of(command: Command, description: str) -> str:
    """The name of a command among the parts of its fingerprint."""
    function = command.function if isinstance(command, Call) else None
    name = getattr(function, "__qualname__", None)
    return f"function {getattr(function, '__module__', '')}.{name}" if name else description


@dataclass(frozen=True, slots=True)
class _Known:
    span: tuple[int, ...]  # with the number of its set of sources, if it has any
    uses: list[str]
    fingerprint: bytes
    parts_of_command: bytes
    parts: bytes
    parameters: Parameters | None
    description: str
    mentioned: tuple[str, ...]  # of a program: what may be paths among its words
    acts_outside: bool
    modules: frozenset[tuple[str, str]]
    stale: tuple[str, ...]  # a sentence for each source that is not what is in memory


def _options_of_functions(job: Job, inputs: Sequence[Input]) -> Iterator[tuple[str, str]]:
    """The options of a job that only a function can have, each with what a command lacks for it."""
    if job.args or job.kwargs:
        yield "args or kwargs", "takes no arguments"
    if inputs:
        advice = "to run it after these jobs, give after=[...]"
        yield "inputs", f"has no parameters to get them; {advice}"
    if job.over is not None:
        yield f"over='{job.over}'", "is not a function"


def is_plain(value: Any) -> bool:
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


def _pickled(command: Command, large: LargeData) -> tuple[bytes, list[str]]:
    """The command as bytes, and the names of its large data."""
    if isinstance(command, Program):
        return pickle.dumps(command, protocol=5), []
    if isinstance(command, RunDag):
        from pyrite.exchange.serializable import check_serializable

        check_serializable(command.dag)
    if isinstance(command, Call) and command.reference is None:
        travel_by_value(command.function)
    return large.pickle_command(command)
