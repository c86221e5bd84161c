"""Functions and classes in parts. Those of installed packages count by name only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from pyrite.workload.input.fingerprints.digests import digest
from pyrite.workload.input.fingerprints.imports import imported_sources
from pyrite.workload.input.fingerprints.node import Global, ImportedModule, Named, Node
from pyrite.workload.input.fingerprints.users_code import is_users, is_users_module

_NOT_OF_A_CLASS = frozenset(
    (
        *("__module__", "__dict__", "__weakref__", "__doc__", "__qualname__", "__annotations__"),
        *("__firstlineno__", "__static_attributes__", "__abstractmethods__"),
        "__slotnames__",  # pickle adds it when it meets the first object of the class
    )
)


def is_users_function(value: object) -> bool:
    return isinstance(value, FunctionType) and is_users(value.__code__.co_filename)


def is_users_class(value: object) -> bool:
    if not isinstance(value, type) or value.__module__ == "builtins":
        return False
    module = sys.modules.get(value.__module__)
    return is_users(getattr(module, "__file__", None) or "<nowhere>")


def place_of(function: FunctionType) -> str:
    """Where a function is defined, for people."""
    code = function.__code__
    return f"{os.path.basename(code.co_filename)} line {code.co_firstlineno}"


def of_function(function: FunctionType) -> Node:
    """The closure of an installed function counts too, because it may be a wrapper around the
    user's function."""
    code = function.__code__
    defaults = function.__defaults__ or ()
    first = code.co_argcount - len(defaults)
    attributes = {name: value for name, value in vars(function).items() if name != "__wrapped__"}
    around = [
        [
            Named(name, _content(cell))
            for name, cell in zip(code.co_freevars, function.__closure__ or ())
        ],
        [Named(name, value) for name, value in zip(code.co_varnames[first:], defaults)],
        [Named(name, value) for name, value in (function.__kwdefaults__ or {}).items()],
        attributes,
        getattr(function, "__wrapped__", None),
    ]
    if not is_users_function(function):
        return Node(f"installed {function.__module__}.{function.__qualname__}", around)
    return Node("function", [code, *around, *_globals(function), *_imports(function)])


def of_code(code: CodeType) -> Node:
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    label = digest(
        code.co_code,
        getattr(code, "co_exceptiontable", b""),
        repr((names, code.co_flags, counts)).encode(),
    )
    return Node(label, list(code.co_consts))


def of_class(cls: type) -> Node:
    name = f"class {cls.__module__}.{cls.__qualname__}"
    if not is_users_class(cls):
        return Node(name)
    children: list[Any] = [type(cls), *cls.__bases__]
    for key, value in vars(cls).items():
        if key not in _NOT_OF_A_CLASS and not key.startswith("_abc_"):
            children += [key, Named(f"{cls.__qualname__}.{key}", value)]
    return Node(name, children)


def _globals(function: FunctionType) -> Iterator[Any]:
    """The global variables that the code of the function uses. Of the user's modules, the
    attributes whose names occur in the code."""
    names = sorted(_names(function.__code__))
    user = f"function {function.__qualname__} of {place_of(function)}"
    space = function.__globals__
    yield from _variables(str(space.get("__name__", "")), space, names, user, set())


def _variables(
    module: str, space: dict[str, Any], names: list[str], user: str, seen: set[int]
) -> Iterator[Any]:
    for name in names:
        if name not in space:
            continue
        value = space[name]
        yield name
        if not isinstance(value, ModuleType) or not is_users_module(value):
            yield Global(module, name, value, user)
        elif id(value) not in seen:
            seen.add(id(value))
            others = [other for other in names if other != name]
            yield from _variables(value.__name__, vars(value), others, user, seen)


def _imports(function: FunctionType) -> list[ImportedModule]:
    package = function.__globals__.get("__package__") or ""
    return [ImportedModule(*found) for found in imported_sources(function.__code__, package)]


def _names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None
