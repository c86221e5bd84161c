"""The survey of a value: hashes it together with everything that can be reached from it.

The code is hashed in units: a function of the user's, a class, a global variable, a module that is
imported when a function runs. A unit refers to other units by name. So the digests of the units
also tell which of them has changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from types import CodeType, FunctionType
from typing import Any

from pyrite.workload.input.fingerprints.code import is_users_class, is_users_function, place_of
from pyrite.workload.input.fingerprints.digests import SIZE, digest
from pyrite.workload.input.fingerprints.node import Global, ImportedModule, Named, Node
from pyrite.workload.input.fingerprints.values import ATOMS, of_atom, of_value


@dataclass(frozen=True, slots=True)
class Survey:
    """`units` has the digest of each unit by its name, and `places` the file and line of each
    function. `reasons` has a sentence for each value that cannot be fingerprinted; `random` has the
    units with such values. `modules` has the modules of all units, each with the path of its source
    if it is one that is imported when a function runs."""

    digest: bytes
    units: dict[str, bytes] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    random: frozenset[str] = frozenset()
    modules: frozenset[tuple[str, str]] = frozenset()


def digest_of(value: Any) -> bytes:
    """The digest of a value: the same in each process for values that mean the same. It is random
    if the value cannot be fingerprinted. Arrays, tables and bytes are not copied."""
    return Fingerprints().of(value)


class Fingerprints:
    """Makes surveys. Units, which many commands share, are taken apart and hashed only once."""

    def __init__(self) -> None:
        self._known: dict[
            int, tuple[Any, Node]
        ] = {}  # by id(); the object is kept alive, so that no other object gets the same id
        self.hashed: dict[Any, _Hashed] = {}

    def of(self, value: Any) -> bytes:
        return self.survey(value).digest

    def survey(self, value: Any) -> Survey:
        return _Surveyor(self).survey(value)

    def node(self, value: Any) -> Node:
        if isinstance(value, ImportedModule):
            return _of_imported(value)
        if not isinstance(value, (FunctionType, CodeType, type)):
            return of_value(value)
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, of_value(value))
        return known[1]


@dataclass(frozen=True, slots=True)
class _Hashed:
    """A unit that was hashed, and the names by which it referred to others then."""

    unit: Any
    digest: bytes
    references: list[tuple[Any, str]]


class _Frame:
    """A value that is being hashed: the parts that are known, and the children that are left."""

    __slots__ = ("is_random", "left", "node", "parts", "value")

    def __init__(self, value: Any, node: Node, *, is_random: bool) -> None:
        self.is_random = is_random
        self.value = value
        self.node = node
        self.parts: list[bytes] = []
        self.left: Iterator[Any] = iter(node.children)

    def digest(self) -> bytes:
        parts = sorted(self.parts) if self.node.unordered else self.parts
        return digest(self.node.label, *parts)


class _Surveyor:
    def __init__(self, fingerprints: Fingerprints) -> None:
        self._fingerprints = fingerprints
        self._done: dict[int, bytes] = {}
        self._kept: list[Any] = []  # kept alive, so that no two values have the same id
        self._names: dict[Any, str] = {}  # of units
        self._counts: dict[str, int] = {}
        self._waiting: list[tuple[str, Any, Any]] = []
        self._references: list[tuple[Any, str]] = []
        self._places: dict[str, str] = {}
        self._reasons: dict[str, None] = {}
        self._random: set[str] = set()
        self._modules: set[tuple[str, str]] = set()

    def survey(self, value: Any) -> Survey:
        root = self._short(value, {}, 0)
        if root is None:
            root = self._hash(value).digest()
        units: dict[str, bytes] = {}
        while self._waiting:
            name, key, unit = self._waiting.pop()
            units[name] = self._digest_of_unit(name, key, unit)
        names = sorted(units)
        whole = digest(root, *[part for name in names for part in (name.encode(), units[name])])
        return Survey(
            whole,
            units,
            self._places,
            tuple(self._reasons),
            frozenset(self._random),
            frozenset(self._modules),
        )

    def _digest_of_unit(self, name: str, key: Any, unit: Any) -> bytes:
        known = self._fingerprints.hashed.get(key)
        if known is not None and all(self._unit(u) == n for u, n in known.references):
            return known.digest
        self._references = []
        self._done = {}
        frame = self._hash(unit)
        found = frame.digest()
        if frame.is_random:
            self._random.add(name)
        else:
            self._fingerprints.hashed[key] = _Hashed(unit, found, self._references)
        return found

    def _hash(self, root: Any) -> _Frame:
        """Hashes a value from the digests of its children. Not a recursive function, because values
        can be nested deeply."""
        frames: list[_Frame] = []
        depths: dict[int, int] = {}
        self._open(root, frames, depths)
        while True:
            frame = frames[-1]
            for child in frame.left:
                short = self._short(child, depths, len(frames))
                if short is None:
                    self._open(child, frames, depths)
                    break
                frame.parts.append(short)
            else:
                frames.pop()
                del depths[id(frame.value)]
                if not frames:
                    return frame
                found = frame.digest()
                frames[-1].parts.append(b"v" + found)
                if frame.is_random:
                    frames[-1].is_random = True
                else:
                    self._done[id(frame.value)] = found

    def _short(self, value: Any, depths: dict[int, int], depth: int) -> bytes | None:
        """The bytes that stand for a value if its children need not be looked at."""
        if type(value) in ATOMS:
            return b"a" + of_atom(value)
        name = self._unit(value)
        if name is not None:
            self._references.append((value, name))
            return b"u" + name.encode("utf-8", "surrogatepass")
        done = self._done.get(id(value))
        if done is not None:
            return b"v" + done
        above = depths.get(id(value))  # the value contains itself
        return b"^%d" % (depth - above) if above is not None else None

    def _unit(self, value: Any) -> str | None:
        """The name of the unit that the value is, if it is one. A new unit waits to be hashed."""
        key: Any
        if isinstance(value, Global):
            if is_users_function(value.value) or is_users_class(value.value):
                return self._unit(value.value)
            key = (value.module, value.name, id(value.value))
            module = (value.module, "")
            name = f"value {value.module}.{value.name}"
        elif isinstance(value, ImportedModule):
            module = (value.module, value.path)
            key = name = f"module {value.module}"
        elif is_users_function(value):
            module = (str(value.__module__), "")
            key = id(value)
            name = f"function {value.__module__}.{value.__qualname__}"
        elif isinstance(value, type) and is_users_class(value):
            module = (value.__module__, "")
            key = id(value)
            name = f"class {value.__module__}.{value.__qualname__}"
        else:
            return None
        known = self._names.get(key)
        if known is not None:
            return known
        count = self._counts[name] = self._counts.get(name, 0) + 1
        if count > 1:
            name = f"{name} #{count}"
        self._names[key] = name
        self._modules.add(module)
        self._kept.append(value)
        self._waiting.append((name, key, value))
        if isinstance(value, FunctionType):
            self._places[name] = place_of(value)
        return name

    def _open(self, value: Any, frames: list[_Frame], depths: dict[int, int]) -> None:
        is_random = False
        try:
            node = self._fingerprints.node(value)
        except Exception:
            is_random = True
            self._reasons[_why(value, frames)] = None
            node = Node(os.urandom(SIZE))
        self._kept += [value, node]
        depths[id(value)] = len(frames)
        frames.append(_Frame(value, node, is_random=is_random))


def _of_imported(source: ImportedModule) -> Node:
    with open(source.path, "rb") as file:
        return Node(sha256(file.read()).digest())


def _why(value: Any, frames: list[_Frame]) -> str:
    """Why a job always runs: the value, where it was found, and in which function."""
    kind = type(value).__qualname__
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    named = [frame.value for frame in frames if isinstance(frame.value, Named)]
    name = named[-1].name if named else ""
    users = [
        frame.value.user
        if isinstance(frame.value, Global)
        else f"function {frame.value.__qualname__} of {place_of(frame.value)}"
        for frame in frames
        if isinstance(frame.value, (Global, FunctionType))
    ]
    where = f", in {users[-1]}" if users else ""
    what = f"the value of {name}" if name else "a value"
    return f"{what} ({article} {kind}{where}) cannot be fingerprinted"
