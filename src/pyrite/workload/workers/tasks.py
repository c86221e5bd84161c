"""A job for a transient worker, with all data that it needs, so that it can run wherever this
package is installed."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from typing import Any

from pyrite.workload.input.large_data import NO_LUGGAGE, Luggage
from pyrite.workload.storage.cleanup_queue import Ending
from pyrite.workload.storage.encoding import Encoded
from pyrite.workload.workers.doing import do
from pyrite.workload.workers.orders import Order


@dataclass(frozen=True, slots=True)
class Task:
    order: Order
    blob: bytes
    command: bytes
    inputs: tuple[Encoded, ...]
    path: tuple[str, ...]
    luggage: Luggage = NO_LUGGAGE


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended, and its output."""

    ending: Ending
    output: bytes


def run_task(task: Task) -> Outcome:
    """Runs a job. Never raises an exception, whatever the job does, unless it kills the process."""
    for folder in task.path:
        if folder not in sys.path:
            sys.path.append(folder)
    inputs = [lambda encoded=encoded: encoded for encoded in task.inputs]
    with _capturing() as output, task.luggage.unpacked():
        ending = do(task.order, task.blob, lambda span: pickle.loads(task.command), inputs)
    return Outcome(ending, b"".join(output))


@contextmanager
def _capturing() -> Iterator[list[bytes]]:
    """Captures the output of a job. In the main thread, that is all output of the process,
    including the output of programs. In another thread, it is the output of Python code of that
    thread."""
    output: list[bytes] = []
    if threading.current_thread() is not threading.main_thread():
        with _of_this_thread() as captured:
            yield output
        output.append(b"" if captured.closed else captured.getvalue())
        return
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1), os.dup(2)
        _flush()
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield output
        finally:
            _flush()
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
            os.close(kept[0])
            os.close(kept[1])
            file.seek(0)
            output.append(file.read())


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass


_texts = threading.local()
_capturing_threads = 0
_redirecting = threading.Lock()


class _ByThread:
    """Replaces sys.stdout or sys.stderr: each thread that captures its output gets its own stream,
    and the other threads get the real one."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def fileno(self) -> int:
        """The descriptor of the real stream, because the stream of a thread has none."""
        return int(self.real.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(_texts, "text", None) or self.real, name)


@contextmanager
def _of_this_thread() -> Iterator[BytesIO]:
    global _capturing_threads
    output = BytesIO()
    with _redirecting:
        _capturing_threads += 1
        if _capturing_threads == 1:
            sys.stdout = _ByThread(sys.stdout)
            sys.stderr = _ByThread(sys.stderr)
    _texts.text = TextIOWrapper(
        output, encoding="utf-8", errors="backslashreplace", write_through=True
    )
    try:
        yield output
    finally:
        text = _texts.text
        del _texts.text
        if not text.closed:
            text.flush()
            text.detach()
        with _redirecting:
            _capturing_threads -= 1
            if not _capturing_threads:
                for name in ("stdout", "stderr"):
                    stream: Any = getattr(sys, name)
                    if isinstance(stream, _ByThread):
                        setattr(sys, name, stream.real)
