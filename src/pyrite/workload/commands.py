"""What a job does: call a function, start a program, or run a DAG; and what the function wants to
be given."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.dag import DAG
from pyrite.functions import describe, message_of, shorten


@dataclass(frozen=True, slots=True)
class Call:
    """A function; `reference` is its `package.module:function` if it was named so."""

    function: Callable[..., Any]
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Program:
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunDag:
    """A DAG that is run on Spark, or, if `light`, in the worker's own process."""

    dag: DAG
    light: bool


Command = Call | Program | RunDag


def interpret(value: Any, *, light: bool = False) -> Command:
    """The command that a user wrote. Raises ValueError with the end of a sentence if it is none."""
    if isinstance(value, DAG):
        return RunDag(value, light)
    if light:
        raise ValueError(f"is marked as light, which only a DAG can be; it is {describe(value)}")
    if callable(value):
        return Call(value)
    if isinstance(value, str):
        return Call(find_function(value), value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return Program(_argv(value))
    raise ValueError(
        "must be a function, a text 'package.module:function', a program as a list of its "
        f"arguments, or a DAG; got {shorten(value)}"
    )


def find_function(text: str) -> Callable[..., Any]:
    """What `package.module:function` names. Raises ValueError with the end of a sentence if there
    is no such thing."""
    where, _, name = text.partition(":")
    if not name or not all(part.isidentifier() for part in [*where.split("."), *name.split(".")]):
        raise ValueError(
            f"'{text}' is not of the form package.module:function; if it is meant for a shell, "
            f"give a list, as ['sh', '-c', '{text}']"
        )
    try:
        found: Any = importlib.import_module(where)
    except Exception as error:
        raise ValueError(
            f"'{text}' cannot be found: importing {where} gave {message_of(error)}"
        ) from None
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ValueError(f"'{text}' cannot be found: there is no '{name}' in {where}") from None
    if not callable(found):
        raise ValueError(f"'{text}' is not a function; it is {shorten(found)}")
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
    """What a function can be given: by position, by name, and what it cannot do without."""

    positional: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    takes_any_position: bool = True
    takes_any_name: bool = True

    def wanted(
        self, upstream: Collection[str], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """The upstream jobs whose results the function gets: those that a parameter, not given
        otherwise, is named after."""
        if not self.named or not upstream:
            return ()
        given = {*self.positional[: len(args)], *kwargs}
        return tuple(name for name in upstream if name in self.named and name not in given)

    def problems(
        self, upstream: Collection[str], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[str]:
        """Ends of sentences about arguments that do not fit."""
        found = []
        given = {*self.positional[: len(args)], *kwargs}
        for name in self.required:
            if name not in given and (name not in upstream or name not in self.named):
                found.append(
                    f"has a parameter '{name}' that gets no value: there is no upstream job of "
                    "this name, nor such an argument"
                )
        if len(args) > len(self.positional) and not self.takes_any_position:
            found.append(
                f"takes {len(self.positional)} arguments by position, and args has {len(args)}"
            )
        if kwargs and not self.takes_any_name:
            found.extend(
                f"has no parameter '{name}', which kwargs gives"
                for name in kwargs
                if name not in self.named
            )
        found.extend(
            f"gets '{name}' twice, from args and from kwargs"
            for name in self.positional[: len(args)]
            if name in kwargs
        )
        return found


def parameters_of(function: Callable[..., Any]) -> Parameters:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # some built-in functions do not tell
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
                f"is a program whose arguments must be texts, numbers or paths; got {shorten(part)}"
            )
        argv.append(str(part))
    if not argv:
        raise ValueError("is an empty list; a program is a list of its name and its arguments")
    return tuple(argv)
