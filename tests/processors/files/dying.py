"""A storage that dies: at each operation, and within those that are not atomic."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import IO, Any, TypeAlias

from pyrite.processors.files import locking
from pyrite.processors.files.storage import DEAD, FsspecStorage

Acts: TypeAlias = tuple[Callable[[], None], Callable[[], None]]


class Killed(BaseException):
    """Stands for the death of the process."""


class Deadly:
    """Counts the operations that change files, and dies at one of them."""

    def __init__(self) -> None:
        self.lives: int | None = None
        self.locks: list[Any] = []

    def step(self) -> None:
        if self.lives is not None:
            self.lives -= 1
            if self.lives < 0:
                raise Killed

    def dies(self, operation: int, act: Callable[[], None]) -> bool:
        """Whether the operation was reached: then the act is cut off, and its locks are lost, as
        when a process dies."""
        self.lives = operation
        self.locks.clear()
        try:
            act()
            return False
        except Killed:
            for lock in self.locks:
                if not isinstance(lock, locking._FileLock):
                    lock.release()
                elif lock._file in locking._held.open_files:
                    locking._held.open_files.discard(lock._file)
                    os.close(lock._file)
            return True
        finally:
            self.lives = None

    def cut_off(self, arrange: Callable[[str], Acts]) -> Iterator[str]:
        """For each pair of operations, a name that was arranged, whose first act was cut off at the
        one, whose second act was cut off at the other, and then was done."""
        for first in count():
            for second in count():
                name = f"{first}-{second}"
                act, again = arrange(name)
                died, died_again = self.dies(first, act), self.dies(second, again)
                again()
                yield name
                if not died_again:
                    break
            if not died:
                assert first > 5
                return


class DeadlyStorage:
    """A storage that dies before each operation, and within those that are not atomic."""

    def __init__(self, storage: Any, deadly: Deadly) -> None:
        self._storage = storage
        self._deadly = deadly

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def lock_folder(self, path: str, owner: str) -> Any:
        lock = self._storage.lock_folder(path, owner)
        self._deadly.locks.append(lock)
        return lock

    def open(self, path: str, mode: str) -> IO[bytes]:
        if mode == "rb":
            return self._storage.open(path, mode)  # type: ignore[no-any-return]
        self._deadly.step()
        self._storage.open(path, mode).close()
        self._deadly.step()
        return self._storage.open(path, mode)  # type: ignore[no-any-return]

    def move(self, path: str, to: str) -> None:
        self._deadly.step()
        if isinstance(self._storage, FsspecStorage):
            self._storage._fs.copy(path, to)
            self._deadly.step()
            self._storage.remove(path)
        else:
            self._storage.move(path, to)

    def make_folder(self, path: str) -> list[str]:
        self._deadly.step()
        return self._storage.make_folder(path)  # type: ignore[no-any-return]

    def remove(self, path: str) -> None:
        self._deadly.step()
        self._storage.remove(path)

    def remove_folder(self, path: str) -> None:
        self._deadly.step()
        if isinstance(self._storage, FsspecStorage):
            self._storage.remove(self._storage._fs.find(path)[0])
        elif not path.endswith(DEAD):
            os.rename(path, path + DEAD)
            path += DEAD
        self._deadly.step()
        self._storage.remove_folder(path)

    def remove_empty_folder(self, path: str) -> None:
        self._deadly.step()
        self._storage.remove_empty_folder(path)
