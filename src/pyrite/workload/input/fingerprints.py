"""Fingerprints: short hashes of the code of a command, of the helper functions that it calls, and
of its arguments.

Two commands have different fingerprints if their code differs, or the data that can be reached from
it. Not included is what a function looks up only when it runs: files, the time, or names that are
computed, as in `getattr(module, name)`. Code of installed packages and of the standard library is
included by name only. If a value cannot be analysed, its fingerprint is random, so that the job
runs again."""

from __future__ import annotations

import dis
import functools
import importlib.util
import os
import site
import sys
import sysconfig
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

from pyrite.dag import DAG

SIZE = 16
NO_FINGERPRINT = bytes(SIZE)
FILE_BYTES_READ = (
    1 << 24
)  # of a file among the arguments of a program; of a larger file, size and time are used

_ATOMS = (type(None), str, int, float, complex, bytes, bool, type(...), type(NotImplemented))
_BY_NAME = (
    BuiltinFunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    WrapperDescriptorType,
)
_SAYS_NOTHING = (
    type(threading.Lock()),
    type(threading.RLock()),
    weakref.ref,
    weakref.WeakKeyDictionary,
    weakref.WeakValueDictionary,
)
"""Locks and caches. Their content does not change what a command does."""

_NOT_OF_A_CLASS = frozenset(
    (
        *("__module__", "__dict__", "__weakref__", "__doc__", "__qualname__", "__annotations__"),
        *("__firstlineno__", "__static_attributes__", "__abstractmethods__"),
    )
)


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


def of_files(argv: tuple[str, ...]) -> bytes:
    """A digest of the files among the arguments of a program, so that a job runs again if a script
    or its data has changed."""
    return digest(*map(_of_file, argv))


class Node:
    """A value in parts: a label for the value itself, and the values that it contains or refers
    to."""

    __slots__ = ("children", "label")

    def __init__(self, label: str | bytes, children: list[Any]) -> None:
        self.label = label.encode("utf-8", "surrogatepass") if isinstance(label, str) else label
        self.children = children


class Fingerprints:
    """Computes fingerprints. Functions and classes, which many commands share, are analysed only
    once."""

    def __init__(self) -> None:
        self._known: dict[
            int, tuple[Any, Node]
        ] = {}  # by id(); the object is kept alive, so that no other object gets the same id

    def of(self, value: Any) -> bytes:
        """The fingerprint of a value: a hash of all values that can be reached from it, each once,
        in breadth-first order."""
        hashed = blake2b(digest_size=SIZE)
        numbers: dict[int, int] = {}
        met: list[Any] = []  # kept alive, so that no two of them have the same id
        waiting: deque[Any] = deque()

        def refer(child: Any) -> None:
            if isinstance(child, _ATOMS) and type(child) in _ATOMS:
                label = f"{type(child).__name__} {_text(child)}".encode("utf-8", "surrogatepass")
                hashed.update(b"a%d " % len(label) + label)
                return
            number = numbers.get(id(child))
            if number is None:
                number = numbers[id(child)] = len(met)
                met.append(child)
                waiting.append(child)
            hashed.update(b"r%d " % number)

        refer(value)
        while waiting:
            node = self._node(waiting.popleft())
            hashed.update(b"n%d " % len(node.label) + node.label + b"c%d " % len(node.children))
            met.append(node)
            for child in node.children:
                refer(child)
        return hashed.digest()

    def _node(self, value: Any) -> Node:
        if not isinstance(value, (FunctionType, CodeType, type)):
            return self._take_apart(value)
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, self._take_apart(value))
        return known[1]

    def _take_apart(self, value: Any) -> Node:
        try:
            return self._parts(value)
        except Exception:
            return Node(os.urandom(SIZE), [])  # the value cannot be analysed

    def _parts(self, value: Any) -> Node:
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if isinstance(value, CodeType):
            return _of_code(value)
        if isinstance(value, type):
            return _of_class(value)
        if isinstance(value, MethodType):
            return Node("method", [value.__func__, value.__self__])
        if isinstance(value, ModuleType):
            return Node(f"module {value.__name__}", [])
        if isinstance(value, _PartOfModule):
            return value.node()
        if isinstance(value, _SAYS_NOTHING):
            return Node(type(value).__name__, [])
        if isinstance(value, _BY_NAME):
            owner = getattr(value, "__self__", None)
            is_bound = owner is not None and not isinstance(owner, (ModuleType, type))
            module, kind = getattr(value, "__module__", ""), getattr(value, "__objclass__", "")
            name = f"built-in {module}.{kind}.{value.__qualname__}"
            return Node(name, [owner] if is_bound else [])
        if isinstance(value, DAG):
            vertices = [[v.name, v.supplier, v.local_parallelism] for v in value.vertices]
            return Node("DAG", [*vertices, *([edge.name, edge.settings] for edge in value.edges)])
        kind = type(value)
        if kind in (list, tuple):
            return Node(kind.__name__, list(value))
        if kind in (dict, MappingProxyType):
            return Node(kind.__name__, [part for item in value.items() for part in item])
        if kind in (set, frozenset):
            return Node(kind.__name__, sorted(Fingerprints().of(item) for item in value))
        if isinstance(value, (staticmethod, classmethod)):
            return Node(kind.__name__, [value.__func__])
        if kind is property:
            return Node("property", [value.fget, value.fset, value.fdel])
        return _of_object(value)

    def _of_function(self, function: FunctionType) -> Node:
        """A function of an installed package is included by name. Its closure is included too,
        because it may be a wrapper around the user's function."""
        around = [
            [_content(cell) for cell in function.__closure__ or ()],
            function.__defaults__,
            function.__kwdefaults__,
        ]
        around.append(
            {name: value for name, value in vars(function).items() if name != "__wrapped__"}
        )
        around.append(getattr(function, "__wrapped__", None))
        if not _is_users(function.__code__.co_filename):
            return Node(f"installed {function.__module__}.{function.__qualname__}", around)
        return Node("function", [function.__code__, *around, *_of_globals(function)])


class _PartOfModule:
    """The part of one of the user's modules that the code of a function may use: the attributes
    whose names occur in the code."""

    def __init__(self, module: ModuleType, names: list[str]) -> None:
        self._module = module
        self._names = names

    def node(self) -> Node:
        children: list[Any] = []
        for name in self._names:
            if name in vars(self._module):
                value = vars(self._module)[name]
                if (
                    isinstance(value, ModuleType)
                    and _is_users_module(value)
                    and value is not self._module
                ):
                    value = _PartOfModule(value, [other for other in self._names if other != name])
                children += [name, value]
        return Node(f"part of module {self._module.__name__}", children)


def _of_globals(function: FunctionType) -> Iterator[Any]:
    """The global variables that the code of the function uses, and the modules that it imports when
    it runs."""
    names = sorted(_names(function.__code__))
    for name in names:
        if name in function.__globals__:
            value = function.__globals__[name]
            yield name
            is_users = isinstance(value, ModuleType) and _is_users_module(value)
            yield _PartOfModule(value, names) if is_users else value
    yield from _of_imports(function)


def _of_imports(function: FunctionType) -> Iterator[Any]:
    """For modules that the code of the function imports, a digest of their whole source, because
    they may not be loaded yet."""
    package = function.__globals__.get("__package__") or ""
    for name in sorted(_imported(function.__code__, package)):
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            source = _source_of(".".join(parts[:end]))
            if source is not None:
                yield ".".join(parts[:end])
                yield _of_file(source)


def _imported(code: CodeType, package: str) -> set[str]:
    found = set()
    level = 0
    constants: list[Any] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_CONST":
            constants.append(instruction.argval)
        elif instruction.opname == "IMPORT_NAME":
            level = next((c for c in reversed(constants[-2:-1]) if isinstance(c, int)), 0)
            base = (
                ".".join(package.split(".")[: len(package.split(".")) - level + 1]) if level else ""
            )
            name = ".".join(part for part in (base, instruction.argval) if part)
            found.add(name)
        elif instruction.opname == "IMPORT_FROM" and found:
            found.add(f"{name}.{instruction.argval}")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _imported(constant, package)
    return found


def _source_of(name: str) -> str | None:
    """The source file of a module, if it is the user's."""
    module = sys.modules.get(name)
    if module is not None:
        origin = getattr(module, "__file__", None)
    else:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, AttributeError, ValueError):
            return None
        origin = spec.origin if spec is not None else None
    return origin if origin and _is_users(origin) and os.path.isfile(origin) else None


def _of_code(code: CodeType) -> Node:
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    label = digest(
        code.co_code,
        getattr(code, "co_exceptiontable", b""),
        repr((names, code.co_flags, code.co_argcount)).encode(),
    )
    return Node(label, list(code.co_consts))


def _of_class(cls: type) -> Node:
    name = f"class {cls.__module__}.{cls.__qualname__}"
    module = sys.modules.get(cls.__module__)
    if cls.__module__ == "builtins" or not _is_users(
        getattr(module, "__file__", None) or "<nowhere>"
    ):
        return Node(name, [])
    children: list[Any] = [type(cls), *cls.__bases__]
    for key, value in vars(cls).items():
        if key not in _NOT_OF_A_CLASS and not key.startswith("_abc_"):
            children += [key, value]
    return Node(name, children)


def _of_object(value: Any) -> Node:
    """The parts that pickle would store. The pickle itself cannot be hashed, because it contains
    only the names of functions and classes, not their code."""
    wrapped = [getattr(value, "__wrapped__", None)] if not isinstance(value, Mapping) else []
    reduced = value.__reduce_ex__(4)
    if isinstance(reduced, str):
        return Node(f"global {reduced}", [type(value), *wrapped])
    make, args, *rest = reduced
    state = rest[0] if rest else None
    items = [list(part) if part is not None else None for part in rest[1:3]]
    return Node("object", [type(value), make, list(args), state, *items, *wrapped])


def _text(atom: Any) -> str:
    return hex(atom) if type(atom) is int else repr(atom)


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
        if not os.path.isfile(path) or not _is_users(os.path.abspath(path)):
            return b""
        status = os.stat(path)
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


def _is_users_module(module: ModuleType) -> bool:
    return _is_users(getattr(module, "__file__", None) or "")


@functools.cache
def _is_users(filename: str) -> bool:
    """Whether a file is the user's own code. The code of functions that were typed at a prompt is
    the user's too."""
    if filename.startswith("<frozen"):
        return False
    return not os.path.abspath(filename).startswith(_installed_places()) if filename else False
