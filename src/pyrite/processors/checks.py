"""Checks of the arguments of the ready-made processors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrite.errors import InvalidDAG
from pyrite.functions import describe, is_async, shorten
from pyrite.where import users_line


def checked_function(
    processor: str, argument: str, function: Callable[..., Any], *, may_be_async: bool = False
) -> Callable[..., Any]:
    if not callable(function):
        raise InvalidDAG(
            f"{argument} of {processor}() in {users_line()} must be a function; got "
            f"{shorten(function)}"
        )
    if not may_be_async and is_async(function):
        raise InvalidDAG(
            f"{argument} of {processor}() in {users_line()} must be a plain function, but "
            f"{describe(function)} is async; await it in a step before: map() of a pipeline, or "
            "map_async() in a DAG"
        )
    return function


def checked_optional_function(
    processor: str, argument: str, function: Callable[..., Any] | None
) -> Callable[..., Any] | None:
    return None if function is None else checked_function(processor, argument, function)


def checked_name(processor: str, name: str) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidDAG(
            f"{processor}() in {users_line()} needs the name of a collection as a non-empty "
            f"string; got {shorten(name)}"
        )
    return name


def checked_count(processor: str, argument: str, count: int, *, least: int = 0) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise InvalidDAG(
            f"{argument} of {processor}() in {users_line()} must be a whole number from {least} "
            f"up; got {shorten(count)}"
        )
    return count
