"""What the jobs of a run take over from the process that started it: the working directory,
sys.path and the umask. It is stored with the run, so that a resumed run has the same."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """`folder` is None if the working directory was removed."""

    folder: str | None
    path: tuple[str, ...]
    umask: int

    @staticmethod
    def here() -> Origin:
        try:
            folder = os.getcwd()
        except OSError:
            folder = None
        return Origin(folder, tuple(map(str, sys.path)), _umask())

    def with_path_of_here(self) -> Origin:
        """The folders of this process's sys.path come last: they have the installed packages, which
        may have moved since the run started."""
        more = (folder for folder in map(str, sys.path) if folder not in self.path)
        return Origin(self.folder, (*self.path, *more), self.umask)

    def on_this_machine(self) -> Origin:
        """With the working directory of this process if the folder does not exist here."""
        exists = self.folder is not None and os.path.isdir(self.folder)
        found = self.with_path_of_here()
        return found if exists else Origin(None, found.path, found.umask)


def _umask() -> int:
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1], 8) for line in file if line.startswith("Umask:"))
    except (OSError, StopIteration):
        found = os.umask(0o077)  # there is no way to read it without changing it
        os.umask(found)
        return found
