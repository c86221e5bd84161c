"""Starts the processes of a run: the master, its workers, and the reaper that no worker
outlives."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pyrite.workload import reaper
from pyrite.workload.alive import Identity
from pyrite.workload.copies import OwnFile, above_streams
from pyrite.workload.reaper import all_processes

# The path comes first: it may be what makes this package importable.
_BOOT = """import json, sys
config = json.loads(sys.argv[1])
sys.path[:] = config["path"]
from importlib import import_module
import_module("pyrite.workload." + config["module"]).main(config)
"""

KILL_SECONDS = 2.0  # a process that the system holds may not die at once
KEPT_SIGNALS = (signal.SIGTERM,)
_PR_SET_CHILD_SUBREAPER = 36


def start(
    module: str,
    config: dict[str, Any],
    *,
    log: Path,
    files: Sequence[int] = (),
    waits: bool = False,
) -> subprocess.Popen[bytes]:
    """Runs `main(config)` of a module of this room in a process, and a session, of its own. It
    prints to `log`.

    If it `waits`, it is given a pipe as its input, to be told when to begin; and signals that it is
    sent before it can deal with them are kept for it (see `take_signals`).
    """
    config = {**config, "module": module, "path": sys.path}
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, KEPT_SIGNALS if waits else ())
    try:
        return subprocess.Popen(
            [sys.executable, "-c", _BOOT, json.dumps(config, default=os.fspath)],
            stdin=subprocess.PIPE if waits else subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=files,
            start_new_session=True,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(output)


def take_signals() -> None:
    """From now on the signals that were kept come through."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, KEPT_SIGNALS)


class Reaper:
    """A small process that ends the sessions it was told of when the master dies, however that
    happens.

    Workers end by themselves when their master does; but one that is stopped, or busy in code that
    holds Python's lock, could not.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", reaper.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        # A copy of this process would keep the pipe open, and the reaper would not learn that we
        # are gone.
        self._pipe = OwnFile(above_streams(os.dup(self._process.stdin.fileno())))
        self._process.stdin.close()

    def watch(self, session: int) -> None:
        self._tell(f"+{session}\n")

    def forget(self, session: int) -> None:
        self._tell(f"-{session}\n")

    @property
    def pid(self) -> int:
        return self._process.pid

    def watch_process(self, process: Identity) -> None:
        """A process that leads no session."""
        self._tell(f"*{process.pid} {process.started}\n")

    def close(self) -> None:
        """Ends the watch, and nothing else."""
        self._tell(".\n")
        self._pipe.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        try:
            os.write(self._pipe.file, line.encode())
        except OSError:  # it was killed; the workers still end by themselves
            pass


def kill_session(leader: int) -> None:
    """Ends a process that leads a session, all that it started there, in whatever process groups
    they are, and its descendants."""
    give_up = time.monotonic() + KILL_SECONDS
    refused: set[int] = set()
    members = _members(leader)
    if leader != os.getpid():
        _kill(leader, refused)
    while members and time.monotonic() < give_up:
        for pid in members:
            _kill(pid, refused)
        members = [pid for pid in _members(leader) if pid not in refused]
        if members:
            time.sleep(0.001)
    _kill(leader, refused)


def _members(leader: int) -> list[int]:
    """The processes of a session, but for its leader, and the descendants of it that went to other
    sessions."""
    processes = [(process.pid, process.parent, process.session) for process in all_processes()]
    family = {leader}
    while more := {
        pid
        for pid, parent, session in processes
        if (parent in family or session in family) and pid not in family
    }:
        family |= more
    return sorted(family - {leader, os.getpid()})


def adopt_orphans() -> None:
    """From now on, what workers leave behind when they die becomes a child of this process, also if
    it hid in a session of its own."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_orphans(known: Collection[int]) -> None:
    """Ends the children of this process that it did not start."""
    me = os.getpid()
    give_up = time.monotonic() + KILL_SECONDS
    refused: set[int] = set()
    while time.monotonic() < give_up:
        children = [
            process.pid for process in all_processes(with_dead=True) if process.parent == me
        ]
        orphans = [pid for pid in children if pid not in known and pid not in refused]
        if not orphans:
            return
        for pid in orphans:
            kill_session(pid)
            _kill(pid, refused)
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass


def _kill(pid: int, refused: set[int]) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:  # a program that became another user
        refused.add(pid)
