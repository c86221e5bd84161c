"""Where a peer's process finds the modules of a job. Two jobs may have different modules of one
name, so the modules of one job are forgotten before another job is run."""

from __future__ import annotations

import importlib
import os
import site
import sys
import sysconfig
from collections.abc import Sequence
from types import ModuleType


class Environment:
    """For a process that does nothing but run parts of jobs: it changes `sys.path` and
    `sys.modules`."""

    def __init__(self) -> None:
        self._path = list(sys.path)
        self._installed = _installed_folders()
        self._job: str | None = None

    def enter(self, job: str, path: Sequence[str]) -> None:
        """From now on imports find the modules that the process that submitted the job would find,
        if it sees the same folders."""
        if job == self._job:
            return
        self._forget()
        self._job = job
        own = [entry for entry in path if os.path.isdir(entry) or os.path.isfile(entry)]
        sys.path[:] = [*own, *(entry for entry in self._path if entry not in own)]
        importlib.invalidate_caches()

    def _forget(self) -> None:
        """Only what can be imported again: what is installed is the same for all jobs, and
        extensions in C cannot be loaded twice."""
        for name, module in list(sys.modules.items()):
            is_own = name == "pyrite" or name.startswith(("pyrite.", "__"))
            if not is_own and not self._is_installed(module):
                del sys.modules[name]

    def _is_installed(self, module: ModuleType) -> bool:
        file = getattr(module, "__file__", None)
        # A package without a file of its own is where its folders are; else it is built in.
        places = [file] if file else list(getattr(module, "__path__", ()))
        return all(os.path.realpath(place).startswith(self._installed) for place in places)


def _installed_folders() -> tuple[str, ...]:
    folders = {*sysconfig.get_paths().values(), *site.getsitepackages(), sys.prefix}
    folders |= {sys.base_prefix, site.getusersitepackages()}
    folders |= {os.path.dirname(os.path.realpath(os.__file__))}
    return tuple(sorted(os.path.realpath(folder) + os.sep for folder in folders))


_this_process: Environment | None = None


def own_this_process() -> None:
    """Called by processes that run nothing but parts of jobs."""
    global _this_process
    _this_process = Environment()


def this_process() -> Environment | None:
    return _this_process
