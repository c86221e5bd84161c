"""Captures the output of a job of a transient worker.

The output goes straight to the log in the store if the worker can reach that file. So it is kept
when the job is killed. Elsewhere it goes to a temporary file, and comes back with the result."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pyrite.workload.workers.running.surroundings import stream


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The place in the master's log at which the output of a job begins. Inode and size tell
    whether the file of this path is that log: on another machine it can be another file."""

    path: str
    inode: int
    size: int

    def open(self) -> int | None:
        """Opens the log, and thereby tells the master that the job has begun; None if this process
        cannot reach it."""
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError:
            return None
        found = os.fstat(file)
        if (found.st_ino, found.st_size) == (self.inode, self.size):
            with suppress(OSError):
                os.utime(file)
                return file
        os.close(file)
        return None


@contextmanager
def capturing(log: LogEnd) -> Iterator[list[bytes]]:
    """Captures the output of a block. In the main thread, that is all output of the process,
    including the output of programs. In another thread, it is the output of Python code of that
    thread. The list is for the output that is not in the log; it is filled at the end."""
    output: list[bytes] = []
    with ExitStack() as opened:
        file = log.open()
        if file is not None:
            opened.callback(os.close, file)
        else:
            temporary = opened.enter_context(tempfile.TemporaryFile())
            file = temporary.fileno()
            opened.callback(lambda: output.append(os.pread(file, os.fstat(file).st_size, 0)))
        is_main = threading.current_thread() is threading.main_thread()
        opened.enter_context(_of_this_process(file) if is_main else _of_this_thread(file))
        yield output


@contextmanager
def _of_this_process(file: int) -> Iterator[None]:
    kept = sys.stdout, sys.stderr
    _flush(*kept)
    files = [_copy(1), _copy(2)]
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout, sys.stderr = stream(1), stream(2)
    try:
        yield
    finally:
        _flush(sys.stdout, sys.stderr)
        sys.stdout, sys.stderr = kept
        for number, copy in enumerate(files, 1):
            if copy is None:
                os.close(number)
            else:
                os.dup2(copy, number)
                os.close(copy)


def _copy(file: int) -> int | None:
    try:
        return os.dup(file)
    except OSError:  # it is closed
        return None


def _flush(*streams: Any) -> None:
    for text in streams:
        with suppress(OSError, ValueError, AttributeError):
            text.flush()


_texts = threading.local()
_capturing_threads = 0
_redirecting = threading.Lock()


class _ByThread:
    """Replaces sys.stdout or sys.stderr: each thread that captures its output gets its own stream,
    and the other threads get the real one."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def fileno(self) -> int:
        """The descriptor of the real stream: the file of a thread is closed with its job."""
        return int(self.real.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(_texts, "text", None) or self.real, name)


@contextmanager
def _of_this_thread(file: int) -> Iterator[None]:
    global _capturing_threads
    with _redirecting:
        _capturing_threads += 1
        if _capturing_threads == 1:
            sys.stdout = _ByThread(sys.stdout)
            sys.stderr = _ByThread(sys.stderr)
    # The stream has its own descriptor: if the job keeps the stream, it must not write to another
    # file that gets the same number later.
    text = _texts.text = stream(os.dup(file), closes=True)
    binary = text.buffer
    try:
        yield
    finally:
        del _texts.text
        _flush(text)
        with suppress(OSError):
            binary.close()
        with _redirecting:
            _capturing_threads -= 1
            if not _capturing_threads:
                for name in ("stdout", "stderr"):
                    replaced: Any = getattr(sys, name)
                    if isinstance(replaced, _ByThread):
                        setattr(sys, name, replaced.real)
