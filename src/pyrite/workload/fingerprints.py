"""A short hash of what a command would do: of its code, of the helpers that it calls, of its arguments.

Two commands of one fingerprint do the same on the same input. The reverse need not hold: where equality cannot be told, the fingerprint
differs and the job just runs again. Code of installed packages and of the standard library counts by its name only.
"""

from __future__ import annotations

import functools
import os
import pickle
import site
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import cloudpickle

from pyrite.dag import DAG

SIZE = 16
NO_FINGERPRINT = bytes(SIZE)
_PLAIN_REDUCE: Any = object.__reduce__
_PLAIN_REDUCE_EX: Any = object.__reduce_ex__
_PLAIN_GETSTATE: Any = getattr(object, "__getstate__", None)
FILE_BYTES_READ = 1 << 24  # of a file that a program is given; a larger one counts by its size and time


def digest(*parts: bytes) -> bytes:
    """
    >>> digest(b"ab", b"c") == digest(b"a", b"bc")
    False
    """
    hashed = blake2b(digest_size=SIZE)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.digest()


class Fingerprints:
    """Takes fingerprints; what many commands share is looked at once."""

    def __init__(self) -> None:
        self._functions: dict[int, tuple[Any, bytes]] = {}  # by id; the object is kept, so that its id stays its own
        self._open: set[int] = set()

    def of(self, value: Any) -> bytes:
        """The fingerprint of any value."""
        if value is None or isinstance(value, (str, int, float, bytes, complex)):
            return digest(type(value).__qualname__.encode(), repr(value).encode("utf-8", "surrogatepass"))
        if id(value) in self._open:
            return b"circle"
        self._open.add(id(value))
        try:
            return digest(type(value).__qualname__.encode(), *self._parts(value))
        finally:
            self._open.discard(id(value))

    def of_program(self, argv: tuple[str, ...]) -> bytes:
        """A program's arguments, and what is in the files among them: a script that was edited is another command."""
        return digest(b"program", *map(os.fsencode, argv), *map(_of_file, argv))

    def _parts(self, value: Any) -> Iterator[bytes]:
        if isinstance(value, FunctionType):
            yield self._of_function(value)
        elif isinstance(value, MethodType):
            yield self.of(value.__func__)
            yield self.of(value.__self__)
        elif isinstance(value, functools.partial):
            yield from map(self.of, (value.func, value.args, value.keywords))
        elif isinstance(value, CodeType):
            yield from self._parts_of_code(value)
        elif isinstance(value, type):
            yield from self._parts_of_class(value)
        elif isinstance(value, ModuleType):
            yield value.__name__.encode()
        elif isinstance(value, BuiltinFunctionType):
            yield f"{value.__module__}.{value.__qualname__}".encode()
            if value.__self__ is not None and not isinstance(value.__self__, (ModuleType, type)):
                yield self.of(value.__self__)
        elif isinstance(value, DAG):
            for vertex in value.vertices:
                yield from map(self.of, (vertex.name, vertex.supplier))
            for edge in value.edges:
                yield from map(self.of, (edge.name, edge.settings))
        elif isinstance(value, (list, tuple)):
            yield from map(self.of, value)
        elif isinstance(value, (set, frozenset)):
            yield from sorted(map(self.of, value))
        elif isinstance(value, dict):
            for key, item in value.items():
                yield self.of(key)
                yield self.of(item)
        elif is_dataclass(value):
            yield self.of(type(value))
            for field in fields(value):
                yield self.of(getattr(value, field.name, None))
        else:
            yield from self._parts_of_object(value)

    def _of_function(self, function: FunctionType) -> bytes:
        known = self._functions.get(id(function))
        if known is not None:
            return known[1]
        if not _is_users(function.__code__.co_filename):
            found = digest(b"installed", f"{function.__module__}.{function.__qualname__}".encode())
        else:
            cells = [_content(cell) for cell in function.__closure__ or ()]
            found = digest(
                self.of(function.__code__),
                *(self.of(part) for part in (function.__defaults__, function.__kwdefaults__, cells)),
                *self._of_globals(function),
            )
        self._functions[id(function)] = (function, found)
        return found

    def _of_globals(self, function: FunctionType) -> Iterator[bytes]:
        """What the function's code names and the module around it holds: helpers, constants, and parts of the user's own modules."""
        names = sorted(_names(function.__code__))
        for name in names:
            if name not in function.__globals__:
                continue
            value = function.__globals__[name]
            yield name.encode()
            if isinstance(value, ModuleType):
                yield value.__name__.encode()
                if _is_users(getattr(value, "__file__", None) or ""):
                    for part in names:
                        if part in vars(value):
                            yield part.encode()
                            yield self.of(vars(value)[part])
            else:
                yield self.of(value)

    def _parts_of_code(self, code: CodeType) -> Iterator[bytes]:
        yield code.co_code
        yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags)).encode()
        yield from map(self.of, code.co_consts)

    def _parts_of_class(self, cls: type) -> Iterator[bytes]:
        yield f"{cls.__module__}.{cls.__qualname__}".encode()
        module = sys.modules.get(cls.__module__)
        if cls.__module__ != "builtins" and _is_users(getattr(module, "__file__", None) or "<nowhere>"):
            yield from map(self.of, cls.__bases__)
            for name, value in vars(cls).items():
                if isinstance(value, (staticmethod, classmethod)):
                    value = value.__func__
                if isinstance(value, property):
                    value = [value.fget, value.fset]
                if isinstance(value, (FunctionType, list, int, str, float, tuple)) and name not in (
                    "__module__",
                    "__firstlineno__",
                ):
                    yield name.encode()
                    yield self.of(value)

    def _parts_of_object(self, value: Any) -> Iterator[bytes]:
        """By its parts where the class leaves its state to Python: pickles of functions inside need not be equal twice."""
        cls: Any = type(value)
        is_plain = cls.__reduce__ is _PLAIN_REDUCE and cls.__reduce_ex__ is _PLAIN_REDUCE_EX and not hasattr(cls, "__slots__")
        if is_plain and hasattr(value, "__dict__") and getattr(cls, "__getstate__", None) is _PLAIN_GETSTATE:
            yield self.of(cls)
            yield self.of(vars(value))
            return
        try:
            yield pickle.dumps(value, protocol=5)
        except Exception:
            try:
                yield cloudpickle.dumps(value)
            except Exception:
                yield os.urandom(SIZE)  # nothing can be told of it


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


def _of_file(path: str) -> bytes:
    try:
        status = os.stat(path)
        if not os.path.isfile(path) or not _is_users(os.path.abspath(path)):
            return b""
        if status.st_size > FILE_BYTES_READ:
            return f"{status.st_size} {status.st_mtime_ns}".encode()
        with open(path, "rb") as file:
            return digest(file.read())
    except (OSError, ValueError):
        return b""


@functools.cache
def _installed_places() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    places = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {
        os.path.dirname(os.__file__),
        "/usr/bin",
        "/bin",
    }
    places |= {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}  # this package
    if hasattr(site, "getsitepackages"):
        places.update(site.getsitepackages())
    return tuple(os.path.join(place, "") for place in places)


@functools.cache
def _is_users(filename: str) -> bool:
    """Whether a file is the user's own code; what has no file, as a function typed at a prompt, is."""
    if filename.startswith("<frozen"):
        return False
    return not os.path.abspath(filename).startswith(_installed_places()) if filename else False
