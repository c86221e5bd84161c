"""The command of a job: call a function, start a program, or run a DAG."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.dag import DAG, dag_of
from pyrite.errors import PyriteError
from pyrite.functions import describe, message_of, shorten


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
