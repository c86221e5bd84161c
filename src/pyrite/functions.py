"""Facts about a user's function that need no call of it: its name, file and line, and whether it
does the same as another."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import os
import re
from collections.abc import Iterable
from itertools import islice
from types import CodeType, FunctionType, MethodType
from typing import Any

from pyrite.weights import is_batch


def describe(function: object) -> str:
    """Names a function, or a class, with its file and line, for an error message.

    >>> describe(len), describe({}.get)
    ('<built-in function len>', '<built-in method get of dict object>')
    """
    function = _innermost(function)
    target = getattr(function, "__func__", function)
    code = getattr(target, "__code__", None)
    if isinstance(code, CodeType):
        name = getattr(target, "__qualname__", code.co_name)
        return f"<function {name}, {os.path.basename(code.co_filename)} line {code.co_firstlineno}>"
    if isinstance(function, type):
        return f"<class {function.__module__}.{function.__qualname__}>"
    return _ADDRESS.sub("", shorten(function))


_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def _innermost(function: object) -> object:
    """The function that a partial, a cache, or an object with the attribute `__wrapped__` calls."""
    for _ in range(100):  # a mock has each attribute, without end
        if isinstance(function, functools.partial):
            function = function.func
        elif not hasattr(function, "__code__") and callable(
            inner := getattr(function, "__wrapped__", None)
        ):
            function = inner
        else:
            break
    return function


def is_async(function: object) -> bool:
    """Whether a function is an `async def`, also as a method, a partial, or the `__call__` of an
    object; or an async generator.

    >>> async def fetch(url): ...
    >>> is_async(fetch), is_async(functools.partial(fetch, "a")), is_async(print)
    (True, True, False)
    """
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        return False
    called = (function, inspect.getattr_static(type(function), "__call__", None))
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in called
    )


def shorten(value: object, limit: int = 120) -> str:
    """The repr of any value, cut to `limit` characters. It never raises."""
    try:
        text = _batch(value) if is_batch(value) else repr(_start_of(value, limit))
    except BaseException as error:
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    return shorten_text(text, limit)


def _batch(batch: Any) -> str:
    columns = ", ".join(f"{field.name} {field.type}" for field in batch.schema)
    return f"<RecordBatch of {batch.num_rows} rows: {columns}>"


def _start_of(value: Any, limit: int, depth: int = 3) -> Any:
    """The part of a value that the first `limit` characters of its repr show: the repr of 100 MB
    takes seconds."""
    if type(value) in (str, bytes, bytearray):
        return value[:limit]
    if depth and type(value) in (list, tuple) and value:
        return type(value)(_start_of(each, limit, depth - 1) for each in value[:limit])
    if depth and type(value) in (set, frozenset) and len(value) > limit:
        return type(value)(islice(value, limit))
    if depth and type(value) is dict:
        start = islice(value.items(), limit)
        return {key: _start_of(each, limit, depth - 1) for key, each in start}
    return value


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of an error message about an unknown name; empty if no known name is similar.

    >>> did_you_mean("laod", ["load", "clean"])
    "; did you mean 'load'?"
    """
    near = difflib.get_close_matches(name, names, 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def encodable(text: str) -> str:
    """The text, without what UTF-8 cannot express.

    >>> print(encodable("café " + chr(0xD800)))
    café \\ud800
    """
    return text.encode("utf-8", "backslashreplace").decode()


def shorten_text(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def message_of(error: BaseException) -> str:
    """The type and the text of any exception. It never raises."""
    try:
        text = str(error)
    except BaseException as other:
        text = f"(its str() raised {type(other).__name__})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def same(a: object, b: object) -> bool:
    """Whether two values are interchangeable. Two functions are if they have the same code and
    equal constants, defaults and closures.

    So a function is the same as its pickled and restored copy, and as a second function with the
    same source.

    >>> same(lambda word: word[0], lambda word: word[0])
    True
    >>> same(lambda word: word[0], lambda word: word[1])
    False
    """
    return _same(a, b, set())


def _same(a: object, b: object, seen: set[tuple[int, int]]) -> bool:
    """`seen` holds the pairs whose comparison has begun. Values that refer to themselves lead back
    to such a pair, which then counts as the same."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if (id(a), id(b)) in seen:
        return True
    seen = seen | {(id(a), id(b))}
    if isinstance(a, FunctionType) and isinstance(b, FunctionType):
        return _same_function(a, b, seen)
    if isinstance(a, MethodType) and isinstance(b, MethodType):
        return _same(a.__func__, b.__func__, seen) and _same(a.__self__, b.__self__, seen)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(_same(x, y, seen) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(value, b[key], seen) for key, value in a.items())
    if isinstance(a, type) or isinstance(b, type):
        return False
    if dataclasses.is_dataclass(a) and dataclasses.is_dataclass(b):
        return all(
            _same(getattr(a, field.name), getattr(b, field.name), seen)
            for field in dataclasses.fields(a)
            if field.compare
        )
    if type(a).__eq__ is not object.__eq__:
        try:
            return bool(a == b)
        except Exception:  # its == raises, or returns an array: compare its parts instead
            pass
    try:
        return _same(a.__reduce_ex__(2), b.__reduce_ex__(2), seen)
    except Exception:  # it does not say what its parts are
        return False


def _same_function(a: FunctionType, b: FunctionType, seen: set[tuple[int, int]]) -> bool:
    if not _same_code(a.__code__, b.__code__):
        return False
    if not _same(
        (a.__defaults__, a.__kwdefaults__, _cells(a)),
        (b.__defaults__, b.__kwdefaults__, _cells(b)),
        seen,
    ):
        return False
    # The same global name may mean something else in another module, so the values are compared.
    if a.__globals__ is b.__globals__:
        return True
    return all(
        _same(a.__globals__.get(name), b.__globals__.get(name), seen)
        for name in a.__code__.co_names
    )


def _same_code(a: CodeType, b: CodeType) -> bool:
    return (
        a.co_code == b.co_code
        and a.co_names == b.co_names
        and a.co_varnames == b.co_varnames
        and a.co_freevars == b.co_freevars
        and a.co_argcount == b.co_argcount
        and a.co_flags == b.co_flags
        and len(a.co_consts) == len(b.co_consts)
        and all(map(_same_constant, a.co_consts, b.co_consts))
    )


def _same_constant(a: object, b: object) -> bool:
    if isinstance(a, CodeType) and isinstance(b, CodeType):
        return _same_code(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):  # (1,) == (True,), but they differ as code
        return len(a) == len(b) and all(map(_same_constant, a, b))
    return type(a) is type(b) and a == b


def _cells(function: FunctionType) -> tuple[Any, ...]:
    """The values of a function's closure."""
    contents = []
    for cell in function.__closure__ or ():
        try:
            contents.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            contents.append(None)
    return tuple(contents)
