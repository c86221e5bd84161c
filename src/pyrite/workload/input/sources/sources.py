"""The source files that the commands of a plan come from, as they are when the plan is made. The
workers compare them with what they have loaded."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import cloudpickle

from pyrite.system.private import write_private
from pyrite.workload.input.fingerprints.digests import digest
from pyrite.workload.input.fingerprints.imports import imports_at_load, with_parents
from pyrite.workload.input.fingerprints.users_code import is_users
from pyrite.workload.input.sources.loaded_code import is_of
from pyrite.workload.input.sources.versions import UNKNOWN, remember, source_file, was_changed

_FILE = "sources.json"


class Source(NamedTuple):
    number: int
    module: str
    path: str
    digest: bytes

    @property
    def name(self) -> str:
        """For people: the path, relative to the folder from which the module is imported."""
        parts = self.path.split(os.sep)
        length = self.module.count(".") + (2 if parts[-1] == "__init__.py" else 1)
        return os.sep.join(parts[-length:])


class Noted(NamedTuple):
    """The number of a set of sources. `reasons` has a sentence for each of them that is not what
    this process has in memory, so that a fingerprint says nothing about what workers will run."""

    number: int
    reasons: tuple[str, ...]


class Sources:
    """Each file is read once per plan."""

    def __init__(self) -> None:
        self._files: dict[str, Source] = {}  # by module
        self._compared: set[str] = set()
        self._reasons: dict[str, str] = {}
        self._sets: list[list[int]] = []
        self._noted: dict[frozenset[tuple[str, str]], Noted] = {}

    def note(self, modules: frozenset[tuple[str, str]]) -> Noted:
        """`modules` are those of a survey."""
        noted = self._noted.get(modules)
        if noted is None:
            names = sorted({name for name, path in modules if not path})
            sources = [*self._loaded(names), *self._to_be_imported(modules)]
            reasons = [self._reasons[one.module] for one in sources if one.module in self._reasons]
            noted = self._noted[modules] = Noted(len(self._sets), tuple(dict.fromkeys(reasons)))
            self._sets.append(sorted({source.number for source in sources}))
        return noted

    def write(self, folder: Path) -> None:
        """Writes them to the folder of a plan."""
        if self._files:
            files = [(*source[:3], source.digest.hex()) for source in self._files.values()]
            write_private(folder / _FILE, json.dumps([files, self._sets]).encode())

    def _loaded(self, names: list[str]) -> Iterator[Source]:
        """The sources of these modules, and of those that they import at their start. A worker
        imports them when it loads a command, except those whose code travels with the command."""
        travelling = {"__main__", *cloudpickle.list_registry_pickle_by_value()}
        met: set[str] = set(travelling)
        waiting = list(names)
        while waiting:
            for name in with_parents(waiting.pop()):
                module = sys.modules.get(name)
                path = source_file(module) if module is not None else None
                if module is None or path is None or name in met or not is_users(path):
                    continue
                met.add(name)
                source = self._read(name, path)
                if source is not None:
                    self._compare(source, module)
                    yield source
                    changed = os.stat(path).st_mtime_ns
                    waiting.extend(imports_at_load(path, changed, module.__package__ or ""))

    def _to_be_imported(self, modules: frozenset[tuple[str, str]]) -> Iterator[Source]:
        for name, path in sorted(modules):
            source = self._read(name, path) if path else None
            if source is not None:
                yield source

    def _read(self, name: str, path: str) -> Source | None:
        source = self._files.get(name)
        if source is None:
            try:
                found = digest(Path(path).read_bytes())
            except OSError:  # it is inside of an archive, or was removed
                return None
            source = self._files[name] = Source(len(self._files), name, path, found)
        return source

    def _compare(self, source: Source, module: ModuleType) -> None:
        """Compares a source with what this process has in memory. The rest of the plan is of
        that."""
        if source.module in self._compared:
            return
        self._compared.add(source.module)
        is_same = not was_changed(source.path) or is_of(
            module, Path(source.path).read_bytes(), source.path
        )
        remember(source.module, source.digest if is_same else UNKNOWN)
        if not is_same:
            self._reasons[source.module] = (
                f"{source.name} was edited after this process imported it, so workers import other "
                "code; import it again, or start a new process"
            )


class OpenSources:
    """The sources of a plan that was written to this folder."""

    def __init__(self, folder: Path) -> None:
        try:
            files, self._sets = json.loads((folder / _FILE).read_bytes())
        except FileNotFoundError:  # all commands are programs, or of installed packages
            files, self._sets = [], []
        self._files = [
            Source(number, module, path, bytes.fromhex(found))
            for number, module, path, found in files
        ]

    def of(self, number: int) -> tuple[Source, ...]:
        """The sources of a set."""
        return tuple([self._files[n] for n in self._sets[number]]) if self._sets else ()

    def name(self, source: int) -> str:
        return self._files[source].name
