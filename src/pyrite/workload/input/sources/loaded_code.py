"""Tells whether a module in memory is what its source file says. The file may have been edited
after the module was imported, as it happens in a notebook."""

from __future__ import annotations

import ast
import functools
import inspect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from pyrite.workload.input.fingerprints.survey import digest_of

_Cached = type(functools.lru_cache(len))
_ATOMS = frozenset((int, float, complex, str, bytes, bool, tuple, type(None)))


def is_of(module: ModuleType, source: bytes, path: str) -> bool:
    """Compares the functions of the module and of its classes, their default values, and constants.
    What the module computed when it was imported cannot be compared."""
    try:
        tree = ast.parse(source, path)
        written = set(_codes(compile(source, path, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return False
    loaded = _functions(vars(module), module.__name__)
    codes = [function.__code__ for function in loaded if function.__code__.co_filename == path]
    stored = Counter(_stored(tree))
    pairs = _pairs(tree.body, vars(module), stored)
    return all((code.co_qualname, digest_of(code)) in written for code in codes) and all(
        _is_equal(value, expression) for value, expression in pairs
    )


def _codes(code: CodeType) -> Iterator[tuple[str, bytes]]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant.co_qualname, digest_of(constant)
            yield from _codes(constant)


def _functions(
    space: Mapping[str, Any], module: str, met: frozenset[type] = frozenset()
) -> Iterator[FunctionType]:
    for value in list(space.values()):
        if (function := _function(value)) is not None:
            yield function
        if isinstance(value, type) and value.__module__ == module and value not in met:
            yield from _functions(vars(value), module, met | {value})


def _function(value: Any) -> FunctionType | None:
    """The function inside of a decorated one, of a method or of a property."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    if isinstance(value, (FunctionType, _Cached)):
        value = inspect.unwrap(value)
    return value if isinstance(value, FunctionType) else None


def _pairs(
    body: Sequence[ast.stmt], space: Mapping[str, Any], stored: Mapping[str, int]
) -> Iterator[tuple[Any, ast.expr]]:
    """Values in memory, and the expressions that they had if nothing was edited. Variables that
    are assigned in several places are left out."""
    for line in body:
        if isinstance(line, ast.ClassDef) and isinstance(space.get(line.name), type):
            yield from _pairs(line.body, vars(space[line.name]), stored)
        elif isinstance(line, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = _function(space.get(line.name))
            given = function.__defaults__ or () if function is not None else ()
            yield from zip(given, line.args.defaults)
        elif isinstance(line, (ast.Assign, ast.AnnAssign)) and line.value is not None:
            for target in line.targets if isinstance(line, ast.Assign) else [line.target]:
                name = target.id if isinstance(target, ast.Name) else ""
                if name in space and stored[name] == 1:
                    yield space[name], line.value


def _stored(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _is_equal(value: Any, expression: ast.expr) -> bool:
    """True also if one of them is not a constant: classes make other things of their variables."""
    try:
        written = ast.literal_eval(expression)
    except (ValueError, TypeError):
        return True
    if type(value) not in _ATOMS or type(written) not in _ATOMS:
        return True
    return type(value) is type(written) and bool(value == written)
