"""Turns the jobs of a workload into bytes and fingerprints. A function that many jobs share is
checked and pickled only once."""

from __future__ import annotations

import importlib.machinery
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import cloudpickle

from pyrite.errors import PyriteError
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
from pyrite.workload.input.jobs.inputs import Input
from pyrite.workload.input.jobs.job import Job
from pyrite.workload.input.jobs.maps import Element, element_of
from pyrite.workload.input.jobs.within import NOTHING, within_of, wrap

_Name = str | Input | Element
"""How a parameter gets the result of upstream jobs. A str is both the parameter and the job."""

SPLITTER = digest(b"elements")

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
