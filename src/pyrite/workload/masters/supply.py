"""The supply of executors: the one that was given or made, and a new one when it breaks, or when
calls that cannot be stopped occupy all of its workers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

from pyrite.errors import RunBroken
from pyrite.functions import message_of
from pyrite.system.alive import Identity
from pyrite.workload.input.options import Options
from pyrite.workload.system import processes
from pyrite.workload.system.origin import Origin
from pyrite.workload.workers.transient.executors import KillableExecutor, ProcessExecutor

MakeExecutor = Callable[[], Executor]


class ExecutorSupply:
    def __init__(
        self, given: Executor | MakeExecutor | None, options: Options, origin: Origin
    ) -> None:
        self._is_ours = not isinstance(given, Executor)
        self._workers = options.workers
        self._reaper: processes.Reaper | None = None
        self._guarded: set[int] = set()
        self._given_up: list[tuple[Executor, Future[Any]]] = []
        self._make: MakeExecutor | None = None
        self._current: Executor | None = None
        if given is None:
            self._make = lambda: ProcessExecutor(
                options.workers, max_calls=options.max_jobs, origin=origin
            )
        elif isinstance(given, Executor):
            self._current = given
            if type(given) in (ProcessPoolExecutor, ThreadPoolExecutor):
                self._make = lambda: _pool_like(given)
        else:
            self._make = given

    def get(self) -> Executor:
        """An executor with a free worker."""
        if self._current is not None and not self._free(self._current):
            self._drop(self._current, _full(self._current), ends=self._is_ours)
        if self._current is None:
            self._current = self._made()
        if self._reaper is None and isinstance(self._current, ProcessPoolExecutor):
            self._reaper = processes.Reaper()
        return self._current

    @property
    def capacity(self) -> int:
        """The number of jobs to submit at the same time: not more than the executor has workers,
        because a job that waits in the queue of a pool could run elsewhere."""
        if self._current is None:
            self._current = self._made()
        return max(1, min(self._workers, self._free(self._current)))

    def guard(self, executor: Executor) -> None:
        """Registers the processes of a pool with the reaper. A ProcessPoolExecutor leaves its
        processes behind if its parent process is killed."""
        if isinstance(executor, ProcessPoolExecutor):
            assert self._reaper is not None
            for pid in list(getattr(executor, "_processes", None) or ()):
                if pid not in self._guarded:
                    self._guarded.add(pid)
                    self._reaper.watch_process(Identity.of(pid))

    def give_up(self, executor: Executor, future: Future[Any]) -> None:
        """A call that cannot be stopped occupies a worker of its executor until it ends."""
        self._given_up.append((executor, future))

    def renew(self, broken: Executor) -> None:
        """Drops a broken executor and kills its remaining processes; `get` makes a new one."""
        if broken is self._current:
            self._drop(broken, f"the executor, a {type(broken).__name__}, is broken", ends=True)

    def close(self, *, ends_all: bool) -> None:
        if self._reaper is not None:
            self._reaper.close()
        if self._current is not None and self._is_ours:
            if ends_all or self._occupied(self._current):
                _end(self._current)
            else:
                self._current.shutdown(wait=True)

    def _made(self) -> Executor:
        assert self._make is not None
        try:
            made = self._make()
        except Exception as error:
            raise RunBroken(
                f"the function given as executor= made no executor: {message_of(error)}"
            ) from error
        if not isinstance(made, Executor):
            raise RunBroken(
                "the function given as executor= must return an Executor; it returned "
                f"{type(made).__name__}"
            )
        if not self._free(made):
            raise RunBroken(f"{_full(made)}; executor= returned the same one again")
        return made

    def _free(self, executor: Executor) -> int:
        """The number of its workers that no given-up call occupies."""
        size: int = getattr(executor, "_max_workers", self._workers)
        return size - self._occupied(executor)

    def _occupied(self, executor: Executor) -> int:
        self._given_up = [(which, future) for which, future in self._given_up if not future.done()]
        return sum(which is executor for which, _ in self._given_up)

    def _drop(self, executor: Executor, why: str, *, ends: bool) -> None:
        if self._make is None:
            raise RunBroken(
                f"{why}; give a function that makes executors as executor=, so that it can be "
                "replaced"
            )
        if ends:
            _end(executor)
        self._current = None
        self._is_ours = True


def _full(executor: Executor) -> str:
    return (
        f"all threads of the executor ({type(executor).__name__}) are taken by jobs that did not "
        "end after their timeout"
    )


def _end(executor: Executor) -> None:
    """Ends an executor and its calls as far as it allows. Does not wait for calls that cannot be
    killed."""
    if isinstance(executor, KillableExecutor):
        executor.kill_all()
    if isinstance(executor, ProcessPoolExecutor):
        for process in list((getattr(executor, "_processes", None) or {}).values()):
            process.kill()
    executor.shutdown(
        wait=isinstance(executor, (KillableExecutor, ProcessPoolExecutor)), cancel_futures=True
    )


def _pool_like(pool: Any) -> Executor:
    if isinstance(pool, ThreadPoolExecutor):
        return ThreadPoolExecutor(
            max_workers=pool._max_workers,
            thread_name_prefix=getattr(pool, "_thread_name_prefix", ""),
            initializer=getattr(pool, "_initializer", None),
            initargs=getattr(pool, "_initargs", ()),
        )
    return ProcessPoolExecutor(
        max_workers=pool._max_workers,
        mp_context=pool._mp_context,
        initializer=pool._initializer,
        initargs=pool._initargs,
        max_tasks_per_child=pool._max_tasks_per_child,
    )
