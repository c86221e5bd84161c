"""Starts and kills the processes of a run: the master, its workers, and the reaper, which kills the
workers of a dead master."""

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

from pyrite.workload.system import reaper
from pyrite.workload.system.alive import Identity
from pyrite.workload.system.copies import OwnFile, above_streams
from pyrite.workload.system.origin import Origin
from pyrite.workload.system.reaper import all_processes

# sys.path is set first, because the import of this package may depend on it.
_BOOT = """import json, sys
config = json.loads(sys.argv[1])
sys.path[:] = config["path"]
from importlib import import_module
import_module("pyrite.workload." + config["module"]).main(config)
"""

KILL_SECONDS = 2.0  # a process that is blocked in the kernel does not die at once
KEPT_SIGNALS = (signal.SIGTERM,)
_PR_SET_CHILD_SUBREAPER = 36


def start(
    module: str,
    config: dict[str, Any],
    *,
    log: Path,
    files: Sequence[int] = (),
    waits: bool = False,
    origin: Origin | None = None,
) -> subprocess.Popen[bytes]:
    """Runs `main(config)` of a module of this package in a new process and a new session. Its
    output goes to `log`. It has the working directory, sys.path and umask of `origin`, or those of
    this process.

    With `waits`, the process has a pipe as its standard input, by which it is told when to begin.
    SIGTERM is then blocked until the process calls `take_signals`, so that no signal is lost.
    """
    path = origin.path if origin is not None else sys.path
    config = {**config, "module": module, "path": path}
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, KEPT_SIGNALS if waits else ())
    try:
        return subprocess.Popen(
            [sys.executable, "-c", _BOOT, json.dumps(config, default=os.fspath)],
            stdin=subprocess.PIPE if waits else subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=files,
            start_new_session=True,
            cwd=origin.folder if origin is not None else None,
            umask=origin.umask if origin is not None else -1,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(output)


def take_signals() -> None:
    """Unblocks the signals that `start` blocked."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, KEPT_SIGNALS)


class Reaper:
    """A small process that kills the registered sessions when the master dies, for whatever reason.

    Workers end by themselves when their master dies. But a worker cannot do so if it was stopped by
    a signal, or if it runs native code that holds the GIL.
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
        # A process forked from this one would keep the pipe open, and the reaper would not notice
        # the death of this process.
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
        """Registers a process that is not the leader of a session."""
        self._tell(f"*{process.pid} {process.started}\n")

    def close(self) -> None:
        """Ends the reaper without killing anything."""
        self._tell(".\n")
        self._pipe.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        try:
            os.write(self._pipe.file, line.encode())
        except OSError:  # the reaper was killed; the workers still end by themselves
            pass


def kill_session(leader: int) -> None:
    """Kills the leader of a session, all processes of the session in any process group, and all
    descendants of these."""
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


def cause_of(code: int) -> str:
    """How a process ended, from its exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _members(leader: int) -> list[int]:
    """The processes of a session without its leader, and the descendants in other sessions."""
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
    """Makes this process the new parent of processes whose parent dies, if they descend from it. So
    it also finds those that moved to a session of their own."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_orphans(known: Collection[int]) -> None:
    """Kills the child processes that this process did not start itself."""
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
    except PermissionError:  # a program that changed its user
        refused.add(pid)
