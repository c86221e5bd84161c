"""Values in parts: containers, objects, built-in functions. What counts is what a value means:
neither the order of a set, nor the identity of an object, nor what it has cached."""

from __future__ import annotations

import copyreg
import marshal
import sys
import threading
import weakref
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import chain
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
from pyrite.workload.input.fingerprints.code import of_class, of_code, of_function
from pyrite.workload.input.fingerprints.digests import digest
from pyrite.workload.input.fingerprints.node import Named, Node
from pyrite.workload.input.fingerprints.tables import of_table

ATOMS = frozenset(
    (type(None), str, int, float, complex, bytes, bool, type(...), type(NotImplemented))
)
_LONG = 64  # a longer list of atoms is hashed as one value
_SHORT = 256  # a longer atom is hashed before its neighbours are
_FLAT = frozenset((str, int, float, bool, bytes, type(None)))

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
    threading.local,
    weakref.ref,
    weakref.WeakKeyDictionary,
    weakref.WeakValueDictionary,
)
"""Locks and caches. Their content does not change what a command does."""


def of_atom(value: Any) -> bytes:
    """
    >>> of_atom(1) == of_atom(True)
    False
    """
    if type(value) is bytes:
        data = value
    elif type(value) is str:
        data = value.encode("utf-8", "surrogatepass")
    else:
        data = (hex(value) if type(value) is int else repr(value)).encode()
    if len(data) > _SHORT:
        data = sha256(data).digest()
    return b"%s %s" % (type(value).__name__.encode(), data)


def is_flat(value: Any) -> bool:
    """Whether a list, tuple or dict contains only numbers, strings, bytes and None, or only lists,
    tuples or dicts of these, as the rows of a table are."""
    if type(value) is dict:
        return _are_flat(value) and is_flat(list(value.values()))
    kinds = set(map(type, value))
    if kinds == {dict}:
        rows = chain.from_iterable(map(dict.values, value))
        return _are_flat(chain.from_iterable(value)) and _are_flat(rows)
    return kinds <= _FLAT or (kinds <= {list, tuple} and _are_flat(chain.from_iterable(value)))


def _are_flat(values: Iterable[Any]) -> bool:
    return set(map(type, values)) <= _FLAT


def of_value(value: Any) -> Node:
    """Raises an exception if the value has no parts that can be compared."""
    if isinstance(value, FunctionType):
        return of_function(value)
    if isinstance(value, CodeType):
        return of_code(value)
    if isinstance(value, type):
        return of_class(value)
    if isinstance(value, Named):
        return Node("named", [value.value])
    if isinstance(value, MethodType):
        return Node("method", [value.__func__, value.__self__])
    if isinstance(value, ModuleType):
        return Node(f"module {value.__name__}")
    if isinstance(value, _SAYS_NOTHING):
        return Node(type(value).__name__)
    if isinstance(value, _BY_NAME):
        return _of_builtin(value)
    if isinstance(value, DAG):
        vertices = [[v.name, v.supplier, v.local_parallelism] for v in value.vertices]
        return Node("DAG", [*vertices, *([edge.name, edge.settings] for edge in value.edges)])
    kind = type(value)
    if kind in (list, tuple, dict, MappingProxyType):
        return _of_container(kind.__name__, value)
    if kind in (set, frozenset):
        return Node(kind.__name__, list(value), unordered=True)
    if isinstance(value, (staticmethod, classmethod)):
        return Node(kind.__name__, [value.__func__])
    if kind is property:
        return Node("property", [value.fget, value.fset, value.fdel])
    table = of_table(value)
    return table if table is not None else _of_object(value)


def _of_container(name: str, value: Any) -> Node:
    if len(value) > _LONG and name != "mappingproxy" and is_flat(value):
        # Version 0 of the format depends on the values only, and not on which of them are one
        # object.
        flat = list(value.items()) if name == "dict" else value
        return Node(digest(b"flat", name.encode(), sha256(marshal.dumps(flat, 0)).digest()))
    if name in ("list", "tuple"):
        return Node(name, list(value))
    return Node(name, [part for item in value.items() for part in item])


def _of_builtin(value: Any) -> Node:
    owner = getattr(value, "__self__", None)
    is_bound = owner is not None and not isinstance(owner, (ModuleType, type))
    module, kind = getattr(value, "__module__", ""), getattr(value, "__objclass__", None)
    of_kind = f"{kind.__module__}.{kind.__qualname__}" if kind is not None else ""
    name = f"built-in {module}.{of_kind}.{value.__qualname__}"
    return Node(name, [owner] if is_bound else [])


def _of_object(value: Any) -> Node:
    """The parts that pickle would store. The pickle itself cannot be hashed, because it contains
    only the names of functions and classes, not their code."""
    for name in ("stdin", "stdout", "stderr"):
        if value is getattr(sys, name):
            return Node(f"sys.{name}")
    wrapped = [getattr(value, "__wrapped__", None)] if not isinstance(value, Mapping) else []
    reduce = copyreg.dispatch_table.get(type(value))  # of compiled patterns, and of NumPy's ufuncs
    reduced = reduce(value) if reduce is not None else value.__reduce_ex__(4)
    if isinstance(reduced, str):
        return Node(f"global {reduced}", [type(value), *wrapped])
    make, args, *rest = reduced
    state = rest[0] if rest else None
    items = [list(part) if part is not None else None for part in rest[1:3]]
    return Node("object", [type(value), make, list(args), state, *items, *wrapped])
