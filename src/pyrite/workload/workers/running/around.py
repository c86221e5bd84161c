"""Sets the environment variables and the working directory of a job while it runs, and checks the
files that it reads and writes."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyrite.errors import PyriteError
from pyrite.workload.input.jobs.secrets import revealed
from pyrite.workload.input.jobs.within import Within


class NoSurroundings(PyriteError):
    """The working directory or the environment that a job asks for cannot be set."""


class FilesMissing(PyriteError):
    """A file that the job reads or writes, according to files_in and files_out, does not exist."""


def around(within: Within) -> tuple[dict[str, str], str | None]:
    """The environment variables and the working directory, which must exist by now."""
    if within.cwd is not None and not os.path.isdir(within.cwd):
        raise NoSurroundings(
            f"its cwd= '{within.cwd}' is not a folder on {socket.gethostname()}, seen from "
            f"'{os.getcwd()}'; make the folder before the job starts"
        )
    return revealed(dict(within.env)), within.cwd


@contextmanager
def in_surroundings(env: Mapping[str, str], cwd: str | None) -> Iterator[None]:
    """Sets them for this process, and restores them."""
    if (env or cwd is not None) and threading.current_thread() is not threading.main_thread():
        raise NoSurroundings(
            "it has env= or cwd=, but runs in a thread, and all threads of a process share these; "
            "use workers that are processes"
        )
    before = {name: os.environ.get(name) for name in env}
    folder = os.getcwd() if cwd is not None else None
    os.environ.update(env)
    try:
        if cwd is not None:
            os.chdir(cwd)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if folder is not None:
            os.chdir(folder)


@contextmanager
def checking_files(within: Within) -> Iterator[None]:
    """Checks that the files which the job reads are there before it runs, and those which it writes
    afterwards. The paths are relative to its working directory at its start."""
    folder = os.path.abspath(within.cwd or "")
    for path in within.files_in:
        if not os.path.exists(os.path.join(folder, path)):
            raise FilesMissing(
                f"its input file '{path}' (files_in) does not exist in '{folder}'; make it, or "
                "name the job that makes it as an upstream job"
            )
    yield
    for path in within.files_out:
        place = os.path.join(folder, path)
        if not os.path.exists(place):
            raise FilesMissing(
                f"it ended without writing its output file '{path}' (files_out): there is no "
                f"'{place}'"
            )
