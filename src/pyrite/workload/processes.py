"""Starts the processes of a run: the master, its workers, and the reaper that no worker outlives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# The path comes first: it may be what makes this package importable.
_BOOT = """import json, sys
config = json.loads(sys.argv[1])
sys.path[:] = config["path"]
from importlib import import_module
import_module("pyrite.workload." + config["module"]).main(config)
"""

KEPT_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)

_REAPER = """import os, signal, sys
groups = set()
for line in iter(sys.stdin.readline, ""):
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


def start(
    module: str, config: dict[str, Any], *, log: Path, files: Sequence[int] = (), waits: bool = False
) -> subprocess.Popen[bytes]:
    """Runs `main(config)` of a module of this room in a process, and process group, of its own. It prints to `log`.

    If it `waits`, it is given a pipe as its input, to be told when to begin; and signals that it is sent before it can deal with them
    are kept for it (see `take_signals`).
    """
    config = {**config, "module": module, "path": sys.path}
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, KEPT_SIGNALS if waits else ())
    try:
        return subprocess.Popen(
            [sys.executable, "-c", _BOOT, json.dumps(config)],
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
    """A small process that ends the process groups it was told of when the master dies, however that happens.

    Workers end by themselves when their master does; but one that is stopped, or busy in code that holds Python's lock, could not.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _REAPER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self, group: int) -> None:
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        self._tell(f"-{group}\n")

    def close(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass
        self._process.wait()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except OSError:  # it was killed; the workers still end by themselves
            pass


def kill_group(pid: int) -> None:
    """Ends a process that leads a group, and all that it started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
