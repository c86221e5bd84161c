"""What a job finds in a worker: the working directory, the output streams, the environment, signal
handlers, limits and the like. They are restored after each job, because a job may change them."""

from __future__ import annotations

# The modules in C: `signal` converts all to enums, and `locale` its names, which takes long.
import _locale
import _signal  # type: ignore[import-not-found]
import gc
import io
import locale
import os
import resource
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TextIO

_ENVIRON = os.environ
_VARIABLES: dict[bytes, bytes] = vars(os.environb)["_data"]  # a copy of os.environ takes long
_LIMITS = [
    getattr(resource, f"RLIMIT_{name}")
    for name in ("AS", "CORE", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "STACK")
]
_SIGNALS = [
    int(number)
    for number in signal.Signals
    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGRTMIN, signal.SIGRTMAX)
]


class Surroundings:
    """Remembers how things are at the time when this object is made. Standard output is the log."""

    def __init__(self) -> None:
        self._log = os.dup(1)
        self._files = [(kept, _identity(kept)) for kept in (os.dup(0), self._log, self._log)]
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._set_streams()
        self._before = [read() for read in _READS]
        self._limits = _LIMITS_ASPECT.read()
        # A job that changes limits imports this module. It is not in the table until then, so the
        # limits need not be read after each job; that would take half of the time of `restore`.
        sys.modules.pop("resource", None)

    def log_size(self) -> int:
        return os.fstat(self._log).st_size

    def restore(self) -> bool:
        """Returns False if something cannot be restored."""
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        os.umask(self._umask)
        self._restore_streams()
        is_restored = True
        if [read() for read in _READS] != self._before:
            for aspect, before in zip(_ASPECTS, self._before):
                if aspect.read() != before:
                    is_restored = aspect.restore(before) and is_restored
        if "resource" in sys.modules and _LIMITS_ASPECT.read() != self._limits:
            is_restored = _LIMITS_ASPECT.restore(self._limits) and is_restored
        return is_restored

    def _restore_streams(self) -> None:
        for file, (kept, identity) in enumerate(self._files):
            if _identity(file) != identity:
                os.dup2(kept, file)
        try:
            self._out.flush()
            self._err.flush()
            streams = (sys.stdin, sys.stdout, sys.stderr)
            if streams == (self._in, self._out, self._err) and not self._in.closed:
                return
        except ValueError:  # it was closed or detached
            pass
        except OSError:
            return  # the disk is full; writing the record of the job will fail as well
        self._set_streams()

    def _set_streams(self) -> None:
        """Sets streams that do not close their files and that write each line at once, because a
        job may be killed at any time."""
        self._out = sys.stdout = stream(1)
        self._err = sys.stderr = stream(2)
        self._in = sys.stdin = io.TextIOWrapper(
            io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8"
        )


class Aspect(NamedTuple):
    """One thing that a job may change."""

    read: Callable[[], Any]
    write: Callable[[Any], None]

    def restore(self, before: Any) -> bool:
        try:
            self.write(before)
        except (OSError, ValueError, locale.Error):
            return False
        return bool(self.read() == before)


def _identity(file: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def stream(file: int, *, closes: bool = False) -> TextIO:
    raw = io.FileIO(file, "w", closefd=closes)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _set_folder(folder: str | None) -> None:
    if folder is not None:
        os.chdir(folder)


def _environment() -> tuple[bool, dict[bytes, bytes]]:
    return os.environ is _ENVIRON, _VARIABLES.copy()


def _set_environment(before: tuple[bool, dict[bytes, bytes]]) -> None:
    os.environ = _ENVIRON  # noqa: B003 - a job may have put another object there
    os.environb.clear()
    os.environb.update(before[1])


def _set_path(before: list[str]) -> None:
    sys.path[:] = before


def _handlers() -> list[Any]:
    return [*map(_signal.getsignal, _SIGNALS)]


def _set_handlers(before: list[Any]) -> None:
    for timer in (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)  # their signals would kill the worker without a handler
    for number, handler in zip(_SIGNALS, before):
        if handler is not None:  # None: it was not set by Python
            signal.signal(number, handler)


def _set_mask(before: set[int]) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _limits() -> list[tuple[int, int]]:
    return [resource.getrlimit(number) for number in _LIMITS]


def _set_limits(before: list[tuple[int, int]]) -> None:
    for number, limits in zip(_LIMITS, before):
        resource.setrlimit(number, limits)


def _users() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    return os.getresuid(), os.getresgid()


def _set_users(before: tuple[tuple[int, int, int], tuple[int, int, int]]) -> None:
    os.setresuid(*before[0])
    os.setresgid(*before[1])


def _interpreter() -> tuple[Any, ...]:
    return (
        sys.getrecursionlimit(),
        sys.getswitchinterval(),
        gc.isenabled(),
        socket.getdefaulttimeout(),
        list(warnings.filters),
    )


def _set_interpreter(before: tuple[Any, ...]) -> None:
    sys.setrecursionlimit(before[0])
    sys.setswitchinterval(before[1])
    (gc.enable if before[2] else gc.disable)()
    socket.setdefaulttimeout(before[3])
    warnings.filters[:] = before[4]  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]


_ASPECTS = [
    Aspect(_interpreter, _set_interpreter),
    Aspect(_folder, _set_folder),
    Aspect(_environment, _set_environment),
    Aspect(lambda: list(sys.path), _set_path),
    Aspect(_handlers, _set_handlers),
    Aspect(partial(_signal.pthread_sigmask, _signal.SIG_BLOCK, ()), _set_mask),
    *([Aspect(_users, _set_users)] if os.geteuid() == 0 else []),  # others cannot change them
    Aspect(
        partial(os.getpriority, os.PRIO_PROCESS, 0),
        lambda nice: os.setpriority(os.PRIO_PROCESS, 0, nice),
    ),
    Aspect(partial(os.sched_getaffinity, 0), partial(os.sched_setaffinity, 0)),
    Aspect(
        partial(_locale.setlocale, _locale.LC_ALL),
        lambda name: (locale.setlocale(locale.LC_ALL, name), None)[1],
    ),
]

_READS = [aspect.read for aspect in _ASPECTS]
_LIMITS_ASPECT = Aspect(_limits, _set_limits)
