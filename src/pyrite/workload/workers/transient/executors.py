"""The default executor of transient workers: processes that run a number of calls each and are then
replaced.

Unlike ProcessPoolExecutor, it survives the death of a process, tells which call died with it, and
can kill a single call.
"""

from __future__ import annotations

import os
import pickle
import queue
import struct
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn, TypeVar

import cloudpickle

from pyrite.system.alive import Identity
from pyrite.workload.system import processes
from pyrite.workload.system.copies import own_pipe
from pyrite.workload.system.origin import Origin
from pyrite.workload.workers.running.leftovers import Leftovers
from pyrite.workload.workers.running.surroundings import Surroundings

Result = TypeVar("Result")

LEAVING_SECONDS = 5.0
LENGTH = struct.Struct("<Q")
LEAVE = 0  # instead of a length: no more calls will come
LAST = 1 << 63
"""Added to the length of an answer after which the process ends."""


class WorkerDied(BrokenExecutor):
    """The process that ran this call has died. The executor itself continues to work."""


class KillableFuture(Future[Any]):
    """A future whose call can be killed while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.is_killed = False
        self._kill: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def kill(self) -> None:
        """Kills the call if it is running; the future then raises WorkerDied. Cancels it if it has
        not started."""
        if self.cancel():
            return
        with self._lock:
            self.is_killed = True
            if self._kill is not None:
                self._kill()

    def begin(self, kill: Callable[[], None]) -> None:
        """The call has started, and can be killed by calling `kill`."""
        with self._lock:
            self._kill = kill
            if self.is_killed:
                kill()

    def over(self) -> None:
        with self._lock:
            self._kill = None


class KillableExecutor(Executor, ABC):
    """An executor with up to `max_workers` threads. Each thread waits for one call at a time, which
    runs in another process. Calls are sent as bytes."""

    is_here = True
    """Whether the calls run on this machine."""

    def __init__(self, max_workers: int) -> None:
        self._max_workers = max_workers
        self._calls: queue.SimpleQueue[tuple[KillableFuture, bytes] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_shut_down = False
        self._under_way: set[KillableFuture] = set()

    @abstractmethod
    def make_call(self, future: KillableFuture, call: bytes) -> bytes:
        """Runs `answer_call(call)` in another process and returns its answer, or raises
        WorkerDied."""

    def end_thread(self) -> None:
        """Called at the end of each thread."""

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        call = cloudpickle.dumps((fn, args, kwargs), protocol=5)
        future = KillableFuture()
        with self._lock:
            if self._is_shut_down:
                raise RuntimeError("this executor was shut down")
            self._calls.put((future, call))
            self._under_way.add(future)
            future.add_done_callback(self._under_way.discard)
            if len(self._threads) < self._max_workers:
                # Daemon threads, because the interpreter does not wait for these when it ends.
                thread = threading.Thread(target=self._serve, name="workload executor", daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            if not self._is_shut_down:
                self._is_shut_down = True
                for _ in self._threads:
                    self._calls.put(None)
        if cancel_futures:
            for future in list(self._under_way):
                future.cancel()
        if wait:
            for thread in self._threads:
                thread.join()

    def kill_all(self) -> None:
        """Kills every call that is waiting or running."""
        for future in list(self._under_way):
            future.kill()

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            future, data = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                succeeded, value = pickle.loads(self.make_call(future, data))
            except BaseException as error:
                succeeded, value = False, error
            future.over()
            if succeeded:
                future.set_result(value)
            else:
                future.set_exception(value)
        self.end_thread()


class ProcessExecutor(KillableExecutor):
    """Runs up to `max_workers` processes at the same time, each for `max_calls` calls."""

    def __init__(
        self, max_workers: int, *, max_calls: int = 1, origin: Origin | None = None
    ) -> None:
        super().__init__(max_workers)
        self._origin = origin
        self._max_calls = max_calls
        self._reaper = processes.Reaper()
        self._mine = _Mine()

    def make_call(self, future: KillableFuture, call: bytes) -> bytes:
        process = self._mine.process or _Process(self._reaper, self._origin)
        self._mine.process = None
        future.begin(process.kill)
        try:
            answer = process.call(call)
        finally:
            future.over()  # first, because the id of a process that has ended may be used again
        if answer is None:
            raise WorkerDied(f"its worker died while it ran ({process.end()})")
        if process.calls < self._max_calls and not process.is_leaving:
            self._mine.process = process
        else:
            process.end()
        return answer

    def end_thread(self) -> None:
        if self._mine.process is not None:
            self._mine.process.end()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            self._reaper.close()


class _Mine(threading.local):
    """What each thread of the executor has: the process for its next call."""

    process: _Process | None = None


class _Process:
    def __init__(self, reaper: processes.Reaper, origin: Origin | None) -> None:
        self.calls = 0
        self.is_leaving = False  # it said that its last answer is the last one
        self._reaper = reaper
        answers, their_answers = own_pipe()
        try:
            self._process = processes.start(
                "workers.transient.executors",
                {"answers": their_answers},
                log=Path(os.devnull),
                files=(their_answers,),
                waits=True,
                origin=origin,
            )
        finally:
            os.close(their_answers)
        assert self._process.stdin is not None
        self._input = self._process.stdin
        self._answers = os.fdopen(answers, "rb")
        reaper.watch(self._process.pid)

    def call(self, data: bytes) -> bytes | None:
        """The answer; None if the process died."""
        self.calls += 1
        with suppress(BrokenPipeError):
            self._input.write(LENGTH.pack(len(data)) + data)
            self._input.flush()
        head = self._answers.read(LENGTH.size)
        length = LENGTH.unpack(head)[0] if len(head) == LENGTH.size else 0
        self.is_leaving = bool(length & LAST)
        size = length & ~LAST
        answer = self._answers.read(size)
        return answer if answer and len(answer) == size else None

    def kill(self) -> None:
        processes.kill_family(self._process.pid)

    def end(self) -> str:
        """Ends the process, if it has not ended. Returns why it ended."""
        # The end of the input is not enough: a process that was forked from this one may keep the
        # pipe open.
        with suppress(OSError):
            self._input.write(LENGTH.pack(LEAVE))
        with suppress(OSError):
            self._input.close()
        Identity.of(self._process.pid).wait(LEAVING_SECONDS)
        if not self._has_left():
            self.kill()  # before wait(), so that its id cannot belong to another process yet
        code = self._process.wait()
        self._reaper.forget(self._process.pid)
        self._answers.close()
        return processes.cause_of(code)

    def _has_left(self) -> bool:
        """Whether it has ended by itself. Then it has also ended the processes that it started."""
        found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found is not None and found.si_code == os.CLD_EXITED and found.si_status == 0


def main(config: dict[str, Any]) -> NoReturn:
    """The main function of the process. It runs calls until its input is closed, which also happens
    when the parent process dies."""
    processes.take_signals()
    processes.adopt_orphans()
    os.set_inheritable(config["answers"], False)
    global _answers
    _answers = answers = os.fdopen(config["answers"], "wb")
    calls = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    processes.end_with(calls.fileno())
    surroundings, leftovers = Surroundings(), Leftovers()
    is_clean = True
    while is_clean and (head := calls.read(LENGTH.size)):
        size = LENGTH.unpack(head)[0]
        if size == LEAVE:
            break
        answer = answer_call(calls.read(size))
        is_restored = surroundings.restore()
        is_clean = leftovers.end() and is_restored
        _answer(answers, answer, is_last=not is_clean)
    sys.stdout.flush()
    processes.end_children()
    os._exit(0)


_answers: IO[bytes] | None = None
"""Where this process answers, if it is one of a ProcessExecutor."""


def can_leave() -> bool:
    """Whether this process is one of a ProcessExecutor, which may end with a call."""
    return _answers is not None


def leave_with(value: Any) -> NoReturn:
    """Answers the call that is running with this value, from another thread, and ends the process
    and those that it started."""
    assert _answers is not None
    _answer(_answers, cloudpickle.dumps((True, value), protocol=5), is_last=True)
    processes.end_family()


def _answer(answers: IO[bytes], answer: bytes, *, is_last: bool) -> None:
    answers.write(LENGTH.pack(len(answer) | (LAST if is_last else 0)) + answer)
    answers.flush()


def answer_call(data: bytes) -> bytes:
    """Runs a pickled call. Returns its pickled result or exception."""
    try:
        fn, args, kwargs = pickle.loads(data)
        answer: bytes = cloudpickle.dumps((True, fn(*args, **kwargs)), protocol=5)
    except BaseException as error:
        try:
            answer = cloudpickle.dumps((False, error), protocol=5)
        except Exception:
            answer = pickle.dumps(
                (False, RuntimeError(f"{type(error).__name__}: {error}")), protocol=5
            )
    return answer
