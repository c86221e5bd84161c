"""Large data among the arguments of jobs: arrays, tables, long strings and bytes.

It is kept apart from the commands, in files that are named by the digests of their contents. So
what many jobs or runs share is stored once. A worker maps the file of an array into its memory; it
may change the array, which changes neither the file nor the arguments of other jobs.
"""

from __future__ import annotations

import mmap
import os
import pickle
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from pyrite.system.private import make_private_folder, write_private
from pyrite.workload.input.commands.pickling import dumps

LARGE = 1 << 16  # the number of bytes from which on data is kept apart
_PLAIN = (int, float, bool, type(None))

Data = Any  # bytes, a memoryview or a PickleBuffer


class Part(NamedTuple):
    """Data in a file of its own."""

    name: str
    size: int
    is_writable: bool = False


class Large:
    """Stands for a large value among the arguments of a job. Its pickle has the names of the files
    with the data; unpickling it gives the value."""

    def __init__(self, pickled: bytes | Part, parts: tuple[Part, ...]) -> None:
        self._pickled = pickled
        self._parts = parts

    def __reduce__(self) -> tuple[Any, ...]:
        plain = tuple(map(tuple, self._parts))
        return _load, (
            tuple(self._pickled) if isinstance(self._pickled, Part) else self._pickled,
            plain,
        )

    @property
    def names(self) -> list[str]:
        parts = [self._pickled, *self._parts]
        return [part.name for part in parts if isinstance(part, Part)]


class LargeData:
    """Takes the large values out of the arguments of jobs. A value that several jobs share is
    looked at once. `contents` has the data by name; arrays are not copied."""

    def __init__(self) -> None:
        self.contents: dict[str, Data] = {}
        self._known: dict[int, tuple[Any, Large | bytes]] = {}  # by id(), with the value kept alive

    def pickle(self, given: tuple[tuple[Any, ...], dict[str, Any]]) -> tuple[bytes, list[str]]:
        """The arguments as bytes, and the names of their large data."""
        buffers: list[pickle.PickleBuffer] = []
        if not any(map(_is_long, (*given[0], *given[1].values()))):
            data = dumps(given, _apart(buffers))
            if not buffers and len(data) < LARGE:
                return data, []
        args = tuple(map(self._replaced, given[0]))
        kwargs = {name: self._replaced(value) for name, value in given[1].items()}
        large = [value for value in (*args, *kwargs.values()) if isinstance(value, Large)]
        data = dumps((args, kwargs))
        return data, [name for value in large for name in value.names]

    def _replaced(self, value: Any) -> Any:
        if type(value) in _PLAIN:
            return value
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, self._taken(value))
        return known[1] if isinstance(known[1], Large) else value

    def pickle_command(self, command: Any) -> tuple[bytes, list[str]]:
        """A command as bytes, and the names of the large data that its function refers to."""
        taken = self._taken(command)
        if isinstance(taken, bytes):
            return taken, []
        return pickle.dumps(taken, protocol=5), taken.names

    def _taken(self, value: Any) -> Large | bytes:
        """The bytes of a value that is not large."""
        if type(value) is bytes and len(value) >= LARGE:
            return Large(b"", (self._put(value),))
        buffers: list[pickle.PickleBuffer] = []
        data = dumps(value, _apart(buffers))
        if not buffers and len(data) < LARGE:
            return data
        parts = tuple(self._put(buffer.raw()) for buffer in buffers)
        return Large(data if len(data) < LARGE else self._put(data), parts)

    def _put(self, data: Data) -> Part:
        view = memoryview(data)
        name = sha256(view).hexdigest()
        self.contents.setdefault(name, data)
        return Part(name, view.nbytes, not view.readonly)


def write_data(folder: Path, contents: Mapping[str, Data]) -> None:
    """Writes data to the files that have its names, unless they exist."""
    if contents:
        make_private_folder(folder)
    for name, data in contents.items():
        path, view = folder / name, memoryview(data)
        if path.exists() and path.stat().st_size == view.nbytes:
            continue
        write_private(folder / f"{name}.new", view)
        os.replace(folder / f"{name}.new", path)


# Where the data is, in a process that runs jobs. The names stand for the contents, so it does not
# matter which of several folders is read.
_folders: dict[str, None] = {}
_carried = threading.local()


def look_in(folder: str | os.PathLike[str]) -> None:
    _folders[os.fspath(folder)] = None


@dataclass(frozen=True, slots=True)
class Luggage:
    """The data of a job that runs where the store may not be: the folder of the data, or the data
    itself."""

    folder: str = ""
    contents: Mapping[str, bytes] = field(default_factory=dict)

    @contextmanager
    def unpacked(self) -> Iterator[None]:
        """While it is, jobs of this thread find the data."""
        if self.folder:
            look_in(self.folder)
        _carried.contents = self.contents
        try:
            yield
        finally:
            _carried.contents = {}


NO_LUGGAGE = Luggage()


def _load(pickled: Any, parts: tuple[Any, ...]) -> Any:
    if pickled == b"":
        return bytes(_open(Part(*parts[0])))
    data = _open(Part(*pickled)) if isinstance(pickled, tuple) else pickled
    return pickle.loads(data, buffers=[_open(Part(*part)) for part in parts])


def _open(part: Part) -> Any:
    carried = getattr(_carried, "contents", {}).get(part.name)
    if carried is not None:
        return bytearray(carried) if part.is_writable else carried
    for folder in _folders:
        try:
            with open(os.path.join(folder, part.name), "rb") as file:
                if os.fstat(file.fileno()).st_size == part.size:
                    access = mmap.ACCESS_COPY if part.is_writable else mmap.ACCESS_READ
                    return mmap.mmap(file.fileno(), part.size, access=access)
        except OSError:
            pass
    raise FileNotFoundError(
        f"the file {part.name} with the data of an argument was removed from the store"
    )


def _apart(buffers: list[pickle.PickleBuffer]) -> Any:
    """Decides for each buffer whether it is kept apart."""

    def decide(buffer: pickle.PickleBuffer) -> bool:
        is_small = memoryview(buffer).nbytes < LARGE
        if not is_small:
            buffers.append(buffer)
        return is_small

    return decide


def _is_long(value: Any) -> bool:
    return type(value) in (bytes, str, bytearray) and len(value) >= LARGE
