"""What a job may change in its worker, besides the output streams: the environment, the working
directory, signal handlers, limits and the like."""

from __future__ import annotations

# The modules in C: `signal` converts all to enums, and `locale` its names, which takes long.
import _locale
import _signal  # type: ignore[import-not-found]
import gc
import locale
import os
import resource
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

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


ASPECTS = [
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

LIMITS = Aspect(_limits, _set_limits)
