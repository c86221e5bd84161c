"""Starts and kills the processes of a run: the master, its workers, and the reaper, which kills the
workers of a dead master."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pyrite.system import reaper
from pyrite.system.alive import Identity
from pyrite.system.reaper import kill_children, kill_families
from pyrite.workload.system.copies import OwnFile, above_streams
from pyrite.workload.system.origin import Origin

# sys.path is set first, because the import of this package may depend on it.
_BOOT = """import json, sys
config = json.loads(sys.argv[1])
sys.path[:] = config["path"]
from importlib import import_module
import_module("pyrite.workload." + config["module"]).main(config)
"""

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


class Survivor:
    """A small program that acts when this process has died, for whatever reason. It notices that by
    the end of a pipe, through which it is told, line by line, what to do then."""

    def __init__(self, program: str, *, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.abspath(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env=env,
        )
        # A process forked from this one would keep the pipe open.
        self._pipe = own_input(self.process)

    def tell(self, line: str) -> None:
        try:
            os.write(self._pipe.file, f"{line}\n".encode())
        except OSError:  # it was killed
            pass


class Reaper(Survivor):
    """Kills the registered workers when the master dies.

    Workers end by themselves when their master dies. But a worker cannot do so if it was stopped by
    a signal, or if it runs native code that holds the GIL.
    """

    def __init__(self) -> None:
        super().__init__(reaper.__file__)

    def watch(self, leader: int) -> None:
        self.tell(f"+{leader}")

    def forget(self, leader: int) -> None:
        self.tell(f"-{leader}")

    def watch_process(self, process: Identity) -> None:
        """Registers a process that is not the leader of a session."""
        self.tell(f"*{process.pid} {process.started}")

    def close(self) -> None:
        """Ends the reaper without killing anything."""
        self.tell(".")
        self._pipe.close()
        self.process.wait()


def own_input(process: subprocess.Popen[bytes]) -> OwnFile:
    """The pipe to the standard input of a process, which no process forked from this one keeps
    open."""
    assert process.stdin is not None
    pipe = OwnFile(above_streams(os.dup(process.stdin.fileno())))
    process.stdin.close()
    return pipe


def kill_family(leader: int) -> None:
    """Kills the leader of a session and all that it started."""
    kill_families({leader})


def end_family() -> NoReturn:
    """Ends this process, which leads a session, and all that it started."""
    kill_families({os.getpid()})
    os._exit(1)


def end_with(file: int) -> None:
    """From now on, this process and all that it started end when the other end of this pipe or
    socket is closed, which is so when the process that holds it has died."""

    def wait() -> NoReturn:
        watch = select.poll()
        watch.register(file, select.POLLRDHUP)
        while not watch.poll():
            pass
        end_family()

    threading.Thread(target=wait, daemon=True).start()


def end_children(but: Callable[[], Iterable[int]] = tuple) -> None:
    """Kills and reaps the children of this process except those that `but` returns. Costs next to
    nothing if it has none."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return
    kill_children(set(but()))


def cause_of(code: int) -> str:
    """How a process ended, from its exit code."""
    return f"exit code {code}" if code >= 0 else signal_name(-code)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def adopt_orphans() -> None:
    """Makes this process the new parent of processes whose parent dies, if they descend from it. So
    it also finds those that moved to a session of their own."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
