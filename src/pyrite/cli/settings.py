"""The option `--set name=value`: arguments for the function that makes a DAG or a Pipeline."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pyrite.errors import PyriteError
from pyrite.functions import describe, message_of

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="An argument for the function that makes the DAG or Pipeline. Its annotation says "
        "what the text is converted to. May be repeated.",
    ),
]

TRUE: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def with_settings(function: Callable[..., Any], settings: Sequence[str]) -> Callable[..., Any]:
    """The function with arguments from texts like `folder=data/`.

    >>> def make(folder: str, days: int = 1):
    ...     return folder, days
    >>> with_settings(make, ["folder=data/", "days=7"])()
    ('data/', 7)
    """
    if not settings:
        return function
    parameters = inspect.signature(function).parameters
    try:
        hints = typing.get_type_hints(function)
    except Exception as error:
        raise PyriteError(
            f"the annotations of {describe(function)} cannot be read: {message_of(error)}"
        ) from error
    arguments = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise PyriteError(f"--set needs NAME=VALUE; got '{setting}'")
        if name not in parameters:
            known = ", ".join(parameters) or "none"
            raise PyriteError(
                f"{describe(function)} has no argument '{name}'; its arguments are: {known}"
            )
        if name in arguments:
            raise PyriteError(f"--set gives the argument '{name}' twice; give it once")
        arguments[name] = _converted(text, hints.get(name, str), name, function)
    return functools.partial(function, **arguments)


def _converted(text: str, kind: Any, name: str, function: Callable[..., Any]) -> Any:
    kinds = [kind]
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kinds = [each for each in typing.get_args(kind) if each is not type(None)]
    for each in kinds:
        try:
            if each is bool:
                return TRUE[text.lower()]
            if each in (int, float, Path):
                return each(text)
        except (ValueError, KeyError):
            continue
        if each in (str, Any):
            return text
    words = " or ".join(getattr(each, "__name__", str(each)) for each in kinds)
    raise PyriteError(
        f"argument '{name}' of {describe(function)} must be {words}; '{text}' cannot be converted. "
        "--set takes str, int, float, bool and Path"
    )
