"""The command of a job: call a function, start a program, or run a DAG. Also the parameters of the
function."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.dag import DAG, dag_of
from pyrite.errors import PyriteError
from pyrite.functions import describe, did_you_mean, message_of, shorten


@dataclass(frozen=True, slots=True)
class Call:
    """A function. `reference` is the string `package.module:function` if the user gave one."""

    function: Callable[..., Any]
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunDag:
    """A DAG that runs on Spark or, if `light`, in the process of the worker."""

    dag: DAG
    light: bool

    @property
    def acts_outside(self) -> bool:
        """Whether it writes to other places than the named maps and lists, which are its
        result."""
        # Imported here: workers and masters of jobs without DAGs start faster without processors.
        from pyrite.processors.collections import WriteList, WriteMap

        return any(
            not self.dag.outbound(vertex)
            and not isinstance(getattr(vertex.supplier, "step", None), (WriteList, WriteMap))
            for vertex in self.dag
        )


Command = Call | Program | RunDag


def interpret(value: Any, *, light: bool = False) -> Command:
    """Makes a command from the value that the user gave. Raises ValueError, with the end of a
    sentence, if the value is not a command."""
    try:
        dag = dag_of(value)
    except PyriteError as error:
        raise ValueError(f"is a pipeline that is not valid: {error}") from None
    if dag is not None:
        return RunDag(dag, light)
    if light:
        raise ValueError(f"has light=True, which is for DAGs only; it is {describe(value)}")
    if callable(value):
        return _call(value)
    if isinstance(value, str):
        return _call(find_function(value), value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return Program(_argv(value))
    raise ValueError(
        "must be a function, a string 'package.module:function', a list of a program and its "
        f"arguments, a DAG, or a Pipeline; got {shorten(value)}"
    )


def _call(function: Callable[..., Any], reference: str | None = None) -> Call:
    called = function
    while isinstance(called, functools.partial):
        called = called.func
    if not inspect.isroutine(called) and not isinstance(called, type):
        called = getattr(called, "__call__", called)  # noqa: B004  # the method of an object
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        kind = "an async generator" if inspect.isasyncgenfunction(called) else "a generator"
        raise ValueError(
            f"is {kind} function, {describe(called)}; its values cannot be stored one by one: "
            "return a list"
        )
    return Call(function, reference)


def find_function(text: str) -> Callable[..., Any]:
    """Imports the function that `package.module:function` names. Raises ValueError, with the end of
    a sentence, if that fails."""
    where, _, name = text.partition(":")
    if not name or not all(part.isidentifier() for part in [*where.split("."), *name.split(".")]):
        raise ValueError(
            f"must have the form 'package.module:function'; got '{text}'. To run a shell command, "
            f"give a list: ['sh', '-c', '{text}']"
        )
    try:
        found: Any = importlib.import_module(where)
    except Exception as error:
        raise ValueError(
            f"is '{text}', which cannot be imported: importing {where} raised {message_of(error)}"
        ) from None
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ValueError(f"is '{text}', but there is no '{name}' in {where}") from None
    if not callable(found):
        raise ValueError(f"is '{text}', which is not a function; it is {shorten(found)}")
    function: Callable[..., Any] = found
    return function


def describe_command(command: Command) -> str:
    if isinstance(command, Call):
        return command.reference or describe(command.function)
    return (
        shorten(list(command.argv))
        if isinstance(command, Program)
        else f"a DAG of {len(list(command.dag))} vertices"
    )


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a function: the positional ones, those that can be given by name, and those
    that have no default value."""

    positional: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    takes_any_position: bool = True
    takes_any_name: bool = True

    def wanted(
        self, upstream: Collection[str], args: Sequence[Any], names: Collection[str]
    ) -> tuple[str, ...]:
        """The upstream jobs whose results the function gets: those with the name of a parameter
        that gets no value from args or, by its name, otherwise."""
        given = {*self.positional[: len(args)], *names}
        return tuple(name for name in upstream if name in self.named and name not in given)

    def problems(
        self,
        upstream: Collection[str],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        inputs: Collection[str] = (),
    ) -> list[str]:
        """What is wrong with the arguments, as the ends of sentences. `inputs` has the parameters
        that `inputs=` names."""
        found = []
        given = {*self.positional[: len(args)], *kwargs, *inputs}
        for name in self.required:
            if name not in given and (name not in upstream or name not in self.named):
                found.append(
                    f"has a parameter '{name}' without a value: there is no upstream job '{name}', "
                    "and args, kwargs and inputs do not give it"
                )
        if len(args) > len(self.positional) and not self.takes_any_position:
            found.append(
                f"takes {len(self.positional)} positional arguments, but args has {len(args)}"
            )
        if kwargs and not self.takes_any_name:
            found.extend(
                f"has no parameter '{name}', but kwargs gives it"
                for name in kwargs
                if name not in self.named
            )
        found.extend(
            f"gets the parameter '{name}' twice, from args and from kwargs"
            for name in self.positional[: len(args)]
            if name in kwargs
        )
        for name in inputs:
            if name in self.positional[: len(args)] or name in kwargs:
                source = "kwargs" if name in kwargs else "args"
                found.append(f"gets the parameter '{name}' twice, from {source} and from inputs")
            elif name in self.positional and name not in self.named:
                found.append(
                    f"has the parameter '{name}', which cannot be given by name, so inputs cannot "
                    "give it"
                )
            elif name not in self.named and not self.takes_any_name:
                near = did_you_mean(name, self.named)
                found.append(f"has no parameter '{name}', but inputs gives it{near}")
        return found


def parameters_of(function: Callable[..., Any]) -> Parameters:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # the parameters of some built-in functions are not known
        return Parameters()
    of_kind: dict[Any, list[str]] = {}
    for parameter in signature.parameters.values():
        of_kind.setdefault(parameter.kind, []).append(parameter.name)
    only_positional = of_kind.get(inspect.Parameter.POSITIONAL_ONLY, [])
    either = of_kind.get(inspect.Parameter.POSITIONAL_OR_KEYWORD, [])
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return Parameters(
        positional=(*only_positional, *either),
        named=frozenset([*either, *of_kind.get(inspect.Parameter.KEYWORD_ONLY, [])]),
        required=tuple(
            p.name
            for p in signature.parameters.values()
            if p.default is inspect.Parameter.empty and p.kind not in variable
        ),
        takes_any_position=inspect.Parameter.VAR_POSITIONAL in of_kind,
        takes_any_name=inspect.Parameter.VAR_KEYWORD in of_kind,
    )


def _argv(value: Sequence[Any]) -> tuple[str, ...]:
    argv = []
    for part in value:
        if not isinstance(part, (str, int, float)) and not hasattr(part, "__fspath__"):
            raise ValueError(
                f"is a program; its arguments must be str, numbers or paths; got {shorten(part)}"
            )
        argv.append(str(part))
    if not argv:
        raise ValueError("is an empty list; give the name of a program and its arguments")
    return tuple(argv)
