"""Gives the `__main__` module of a worker the functions and classes of the user's script that a job
uses. Processes that the job starts, such as those of a `multiprocessing.Pool`, look for them
there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

_INNER = ("func", "__func__", "__wrapped__", "__call__")
"""Where the function is in a partial, a method, a cached function and an object."""

_DEPTH = 8  # the __call__ of a built-in function has a __call__ itself, and so on without end

_given: dict[str, Any] = {}
_last: Any = None


def introduce(function: Any, arguments: Iterable[Any] = ()) -> None:
    """Nothing that `__main__` has of its own is replaced, as in a thread of the user's script."""
    global _last
    if function is not _last:
        _last = function
        _introduce(function)
    for argument in arguments:
        if callable(argument):
            _last = None
            _introduce(argument)


def _introduce(function: Any) -> None:
    for _ in range(_DEPTH):
        if hasattr(function, "__globals__") or isinstance(function, type):
            break
        inner = next(filter(None, (getattr(function, name, None) for name in _INNER)), None)
        if inner is None:
            return
        function = inner
    if not hasattr(function, "__globals__"):  # it is built in
        return
    if function.__globals__.get("__name__") != "__main__":
        return
    main = sys.modules["__main__"]
    found = {**function.__globals__, function.__name__: function}
    for name, value in found.items():
        is_new = name not in vars(main) or vars(main)[name] is _given.get(name, main)
        if is_new and getattr(value, "__module__", None) == "__main__":
            _given[name] = value
            setattr(main, name, value)
    # Processes that are spawned, not forked, import the script.
    path = function.__code__.co_filename
    if getattr(main, "__file__", None) is None and os.path.isfile(path):
        main.__file__ = os.path.abspath(path)
