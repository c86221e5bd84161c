"""Storage: where the files of sources and sinks are. Paths of this machine, and URLs of whatever
fsspec knows (s3://, gs://, file://)."""

from __future__ import annotations

import glob
import io
import os
import re
import shutil
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from pyrite.errors import InvalidDAG

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


class Found(NamedTuple):
    path: str
    size: int | None
    """None where it cannot be known before the file is read."""


class Storage(Protocol):
    """What sources and sinks do with files. Paths are those that the storage was asked for, or
    gave."""

    def find(self, pattern: str) -> list[Found]:
        """The files that match a glob pattern, sorted by path."""

    def open(self, path: str, mode: str) -> IO[bytes]: ...

    def exists(self, path: str) -> bool: ...

    def is_folder(self, path: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """The names of what is in a folder."""

    def make_folder(self, path: str) -> None:
        """Makes a folder, and those above it; one that exists is left as it is."""

    def move(self, path: str, to: str) -> None:
        """Gives a file another path. A file that has that path is replaced."""

    def remove(self, path: str) -> None: ...

    def remove_folder(self, path: str) -> None:
        """Removes a folder and all that is in it."""

    def remove_empty_folder(self, path: str) -> None: ...


def is_url(path: str) -> bool:
    return _URL.match(path) is not None


def storage_of(path: str) -> Storage:
    """The storage that a path or URL belongs to."""
    return FsspecStorage(path) if is_url(path) else LocalStorage()


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

    def make_folder(self, path: str) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    def move(self, path: str, to: str) -> None:
        os.replace(path, to)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_folder(self, path: str) -> None:
        shutil.rmtree(path)

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
        except (
            ImportError,
            ValueError,
        ) as error:  # the package for this kind of URL is missing, or there is none
            raise InvalidDAG(f"'{url}' cannot be read or written: {error}") from error

    def find(self, pattern: str) -> list[Found]:
        found = self._fs.glob(pattern, detail=True)
        files = [
            Found(self._fs.unstrip_protocol(path), of["size"])
            for path, of in found.items()
            if of["type"] == "file"
        ]
        return sorted(files)

    def open(self, path: str, mode: str) -> IO[bytes]:
        if mode == "rb" and path.startswith(
            "memory:"
        ):  # all who open such a file share one position in it
            return io.BytesIO(self._fs.cat_file(path))
        opened: IO[bytes] = self._fs.open(path, mode)
        return opened

    def exists(self, path: str) -> bool:
        return bool(self._fs.exists(path))

    def is_folder(self, path: str) -> bool:
        return bool(self._fs.isdir(path))

    def names(self, folder: str) -> list[str]:
        return [
            str(path).rstrip("/").rsplit("/", 1)[-1] for path in self._fs.ls(folder, detail=False)
        ]

    def make_folder(self, path: str) -> None:
        self._fs.makedirs(path, exist_ok=True)

    def move(self, path: str, to: str) -> None:
        self._fs.mv(path, to)

    def remove(self, path: str) -> None:
        self._fs.rm_file(path)

    def remove_folder(self, path: str) -> None:
        self._fs.rm(path, recursive=True)

    def remove_empty_folder(self, path: str) -> None:
        self._fs.rmdir(path)
