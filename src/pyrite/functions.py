"""What can be said of a user's function without calling it: where it stands, and whether two of them are the same."""

from __future__ import annotations

import functools
import os
from types import CodeType, FunctionType
from typing import Any


def describe(function: object) -> str:
    """Names a function, or a class, with its file and line, for an error message.

    >>> describe(len)
    '<built-in function len>'
    """
    while isinstance(function, functools.partial):
        function = function.func
    target = getattr(function, "__func__", function)
    code = getattr(target, "__code__", None)
    if isinstance(code, CodeType):
        name = getattr(target, "__qualname__", code.co_name)
        return f"<function {name}, {os.path.basename(code.co_filename)} line {code.co_firstlineno}>"
    if isinstance(function, type):
        return f"<class {function.__module__}.{function.__qualname__}>"
    return shorten(function)


def shorten(value: object, limit: int = 120) -> str:
    """The repr of any value, at most `limit` characters of it, and never an exception."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def same(a: object, b: object) -> bool:
    """Whether two values, functions included, would do the same: the same code over equal constants, defaults and closure.

    Functions that were pickled and restored, or written out twice, are the same in this sense.

    >>> same(lambda word: word[0], lambda word: word[0])
    True
    >>> same(lambda word: word[0], lambda word: word[1])
    False
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, FunctionType) and isinstance(b, FunctionType):
        return _same_function(a, b)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    try:
        if bool(a == b):
            return True
    except Exception:  # a value whose == answers with an array, or raises, is compared by its fields below
        pass
    fields_a, fields_b = _fields(a), _fields(b)
    return fields_a is not None and fields_b is not None and same(fields_a, fields_b)


def _same_function(a: FunctionType, b: FunctionType) -> bool:
    if not _same_code(a.__code__, b.__code__):
        return False
    if not same(a.__defaults__, b.__defaults__) or not same(a.__kwdefaults__, b.__kwdefaults__):
        return False
    if not same(_cells(a), _cells(b)):
        return False
    # A global may name something else in another module: what the code uses must be the same on both sides.
    names = a.__code__.co_names
    return a.__globals__ is b.__globals__ or all(_same_global(a.__globals__.get(name), b.__globals__.get(name)) for name in names)


def _same_global(a: object, b: object) -> bool:
    if isinstance(a, FunctionType) and isinstance(b, FunctionType):
        return a is b or _same_code(a.__code__, b.__code__)  # not deeper: functions may call one another in a circle
    return a is b or same(a, b)


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
    if isinstance(a, tuple) and isinstance(b, tuple):  # (1,) == (True,), and yet they are not the same constant
        return len(a) == len(b) and all(map(_same_constant, a, b))
    return type(a) is type(b) and a == b


def _cells(function: FunctionType) -> tuple[Any, ...]:
    """What a function closed over; a cell that holds the function itself (it calls itself) stands as None."""
    contents = []
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            value = None
        contents.append(None if value is function else value)
    return tuple(contents)


def _fields(value: object) -> dict[str, Any] | None:
    """The state of a plain object: its `__dict__`, or its slots."""
    if isinstance(value, type):
        return None
    fields = getattr(value, "__dict__", None)
    if isinstance(fields, dict):
        return fields
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return {name: getattr(value, name, None) for name in slots} if slots else None
