"""Locks on folders: one job at a time writes to a folder.

A folder of this machine is locked with `flock` on a hidden file in it. The operating system
releases such a lock when the process ends, whatever ended it, so a job that was killed blocks
nobody. Where there is no such lock (URLs, some network file systems), jobs of this process exclude
each other, and no more than that is known.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from typing import Protocol

LOCK_FILE = ".pyrite-lock"
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


class FolderIsTaken(Exception):
    """Another job has the folder. The text says which."""


class FolderLock(Protocol):
    """A folder that one job has for itself."""

    excludes_all: bool
    """Whether no other process can have the folder, so that whatever another job left in it is
    dead."""

    def release(self) -> None: ...


def lock_by_file(folder: str, owner: str) -> FolderLock:
    """Locks a folder that exists. Raises FolderIsTaken."""
    path = f"{folder}/{LOCK_FILE}"
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, path):
                os.ftruncate(file, 0)
                os.pwrite(file, owner.encode(), 0)
                return _FileLock(file, path)
        except BlockingIOError:
            other = os.pread(file, 4096, 0).decode(errors="replace")
            os.close(file)
            raise FolderIsTaken(other or "another job") from None
        except OSError as error:
            os.close(file)
            if error.errno not in _NO_LOCKS:
                raise
            _unlink(path)
            return lock_in_process(os.path.realpath(folder), owner)
        os.close(file)  # the one before has removed it: its lock is worth nothing


def lock_in_process(folder: str, owner: str) -> FolderLock:
    """Locks a folder against the other jobs of this process. Raises FolderIsTaken."""
    with _guard:
        if folder in _taken:
            raise FolderIsTaken(_taken[folder])
        _taken[folder] = owner
    return _ProcessLock(folder)


class _FileLock:
    excludes_all = True

    def __init__(self, file: int, path: str) -> None:
        self._file = file
        self._path = path
        _open_files.add(file)

    def release(self) -> None:
        """Removes the file first, while nobody else can have locked it."""
        _unlink(self._path)
        _open_files.discard(self._file)
        fcntl.flock(self._file, fcntl.LOCK_UN)  # also for a child that is just being forked
        os.close(self._file)


class _ProcessLock:
    excludes_all = False

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def release(self) -> None:
        with _guard:
            _taken.pop(self._folder, None)


_guard = threading.Lock()
_taken: dict[str, str] = {}
_open_files: set[int] = set()


def _forget_in_child() -> None:
    """The locks are the parent's. A forked child that kept the files open would hold them for as
    long as it lives."""
    global _guard
    _guard = threading.Lock()
    _taken.clear()
    while _open_files:
        os.close(_open_files.pop())


os.register_at_fork(after_in_child=_forget_in_child)


def _is_at(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # the folder is gone, or read-only by now; an empty file without a lock harms nobody
