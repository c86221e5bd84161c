"""Storage: where the files of sources and sinks are. Paths of this machine, and URLs of whatever
fsspec knows (s3://, gs://)."""

from __future__ import annotations

import glob
import io
import os
import re
import shutil
from typing import IO, Any, NamedTuple, Protocol

from pyrite.errors import InvalidDAG
from pyrite.functions import shorten
from pyrite.processors.files.locking import FolderLock, lock_by_file, lock_in_process

DEAD = ".dead"
"""Ends the name of a folder that is being removed."""
_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


class Found(NamedTuple):
    path: str
    size: int | None
    """None where it cannot be known before the file is read."""


class Storage(Protocol):
    """What sources and sinks do with files. Paths are those that the storage was asked for, or
    gave."""

    def find(self, pattern: str) -> list[Found]:
        """The files that match a glob pattern, sorted by path. A wildcard does not match a leading
        dot."""

    def open(self, path: str, mode: str) -> IO[bytes]: ...

    def exists(self, path: str) -> bool: ...

    def is_folder(self, path: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """The names of what is in a folder."""

    def make_folder(self, path: str) -> list[str]:
        """Makes a folder and those above it, and returns the ones that were missing, outermost
        first."""

    def lock_folder(self, path: str, owner: str) -> FolderLock:
        """Raises FolderIsTaken if another job has the folder."""

    def move(self, path: str, to: str) -> None:
        """Gives a file another path. A file that has that path is replaced."""

    def remove(self, path: str) -> None: ...

    def remove_folder(self, path: str) -> None:
        """Removes a folder and all that is in it. A process that still writes to it cannot bring it
        back, where the storage has real folders."""

    def remove_empty_folder(self, path: str) -> None:
        """Raises OSError if the folder is not empty."""


def is_url(path: str) -> bool:
    return _URL.match(path) is not None


def storage_of(path: str) -> Storage:
    """The storage that a path or URL belongs to."""
    return FsspecStorage(path) if is_url(path) else LocalStorage()


def checked_path(processor: str, path: str | os.PathLike[str]) -> str:
    """A path that means the same in every process of this machine, or a URL. Raises InvalidDAG."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise InvalidDAG(f"{processor}() needs a path; got {shorten(path)}")
    path = os.fspath(path)
    if path.lower().startswith("file://"):
        path = path[len("file://") :]
    if is_url(path):
        storage_of(path)  # raises if there is no way to it
        return path.rstrip("/")
    return os.path.abspath(os.path.expanduser(path))


class LocalStorage:
    def find(self, pattern: str) -> list[Found]:
        paths = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
        return [Found(path, os.path.getsize(path)) for path in paths]

    def open(self, path: str, mode: str) -> IO[bytes]:
        opened: IO[bytes] = open(path, mode)  # noqa: SIM115 whoever asks closes it
        return opened

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def names(self, folder: str) -> list[str]:
        return os.listdir(folder)

    def make_folder(self, path: str) -> list[str]:
        missing = _missing(self, path)
        os.makedirs(path, exist_ok=True)
        return missing

    def lock_folder(self, path: str, owner: str) -> FolderLock:
        return lock_by_file(path, owner)

    def move(self, path: str, to: str) -> None:
        os.replace(path, to)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_folder(self, path: str) -> None:
        dead = path + DEAD  # no process knows this path, so none adds a file while we remove
        os.rename(path, dead)
        shutil.rmtree(dead)

    def remove_empty_folder(self, path: str) -> None:
        os.rmdir(path)


class FsspecStorage:
    """Whatever fsspec knows. Its settings, such as keys, are found where fsspec looks for them: the
    environment, configuration files."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise InvalidDAG(
                f"'{url}' is a URL, and to read or write it takes fsspec: pip install "
                "'pyrite[remote]'"
            ) from None
        try:
            self._fs: Any = url_to_fs(url)[0]
        except (ImportError, ValueError) as error:  # no such kind of URL, or its package is missing
            raise InvalidDAG(f"'{url}' cannot be read or written: {error}") from error

    def find(self, pattern: str) -> list[Found]:
        found = self._fs.glob(pattern, detail=True)
        files = [
            Found(self._fs.unstrip_protocol(path), of["size"])
            for path, of in found.items()
            if of["type"] == "file"
        ]
        return sorted(file for file in files if not _is_hidden(file.path, pattern))

    def open(self, path: str, mode: str) -> IO[bytes]:
        if mode == "rb" and path.startswith("memory:"):  # else all readers share one position
            return io.BytesIO(self._fs.cat_file(path))
        opened: IO[bytes] = self._fs.open(path, mode)
        return opened

    def exists(self, path: str) -> bool:
        return bool(self._fs.exists(path))

    def is_folder(self, path: str) -> bool:
        return bool(self._fs.isdir(path))

    def names(self, folder: str) -> list[str]:
        try:
            listed = self._fs.ls(folder, detail=False)
        except FileNotFoundError:  # an object store has no folder before there is a file in it
            return []
        return [str(path).rstrip("/").rsplit("/", 1)[-1] for path in listed]

    def make_folder(self, path: str) -> list[str]:
        missing = _missing(self, path)
        self._fs.makedirs(path, exist_ok=True)
        return missing

    def lock_folder(self, path: str, owner: str) -> FolderLock:
        return lock_in_process(path, owner)

    def move(self, path: str, to: str) -> None:
        self._fs.mv(path, to)

    def remove(self, path: str) -> None:
        self._fs.rm_file(path)

    def remove_folder(self, path: str) -> None:
        self._fs.rm(path, recursive=True)

    def remove_empty_folder(self, path: str) -> None:
        if self.names(path):
            raise OSError(f"'{path}' is not empty")
        self._fs.rmdir(path)


def _missing(storage: Storage, path: str) -> list[str]:
    """The folders that must be made for this one to exist, outermost first."""
    missing: list[str] = []
    start = path.find("://") + 3 if is_url(path) else 0
    while path[start:].strip("/") and not storage.exists(path):
        missing.insert(0, path)
        path = path[: path.rindex("/")] if "/" in path[start:] else path[:start]
    return missing


def _is_hidden(path: str, pattern: str) -> bool:
    """Whether a wildcard of the pattern would have to match a leading dot. fsspec lets it."""
    literal = re.split(r"[*?\[]", pattern, maxsplit=1)[0].rsplit("/", 1)[0]
    if "/." in pattern[len(literal) :]:
        return False
    depth = len([part for part in literal.split("://", 1)[-1].split("/") if part])
    parts = [part for part in path.split("://", 1)[-1].split("/") if part]
    return any(part.startswith(".") for part in parts[depth:])
