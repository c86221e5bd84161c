"""The execution service: a fixed pool of workers that call cooperative tasklets in turn, and
threads for calls that may block."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Final

from pyrite.engine.failure import Failed
from pyrite.engine.parking import Parking
from pyrite.engine.stealing import worker_to_rob
from pyrite.engine.tasklets import DONE_NOW, IDLE, Tasklet

SHORTEST_PARK: Final = 25e-6
LONGEST_PARK: Final = 500e-6
LONGEST_BLOCKING_PARK: Final = 5e-3
LONGEST_WAIT: Final = 20e-3
"""If only a wake can bring work."""

logger = logging.getLogger("pyrite.engine")

OnDone = Callable[[Tasklet], None]


def default_pool_size() -> int:
    """One worker where a global lock lets only one thread run Python anyway; else one per CPU."""
    import os

    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return 1 if gil else os.cpu_count() or 1


class ExecutionService:
    """Runs tasklets until they are done. Then calls `on_done` for each, on the thread that ran
    it."""

    def __init__(
        self,
        pool_size: int | None = None,
        *,
        name: str = "pyrite",
        parking: Parking | None = None,
    ) -> None:
        """`parking` is where the worker waits, if there is only one; else a plain one."""
        size = pool_size or default_pool_size()
        assert parking is None or size == 1
        self.workers = [Worker(self, index, name, parking or Parking()) for index in range(size)]
        self.threads = BlockingThreads(name)
        self._turn = 0
        self._closed = False

    def submit(self, tasklets: Sequence[Tasklet], on_done: OnDone) -> None:
        """Spreads cooperative tasklets evenly over the workers."""
        shares: list[list[Entry]] = [[] for _ in self.workers]
        for i, tasklet in enumerate(tasklets):
            shares[(self._turn + i) % len(shares)].append((tasklet, on_done))
        self._turn = (self._turn + len(tasklets)) % len(shares)
        for worker, share in zip(self.workers, shares):
            if share:
                worker.give(share)

    def submit_blocking(self, tasklet: Tasklet, on_done: OnDone) -> None:
        """Runs a tasklet that may block, on a thread of its own."""
        self.threads.run(lambda: run_alone(tasklet, on_done))

    def wake(self) -> None:
        """Lets the workers call their tasklets now. Any thread may call this."""
        for worker in self.workers:
            worker.wake()

    def is_worker_thread(self) -> bool:
        """Whether the calling thread is one of the workers."""
        return getattr(_this_thread, "pool", None) is self

    def is_own_thread(self) -> bool:
        """Whether the calling thread is one of this service: a worker, or a blocking thread."""
        return getattr(_this_thread, "pool", None) in (self, self.threads)

    def close(self, *, wait: bool = True) -> None:
        """Stops the workers when their tasklets are done, and waits for that. The caller must have
        halted the tasklets."""
        if self._closed:
            return
        self._closed = True
        for worker in self.workers:
            worker.stop()
        self.threads.close(wait=wait)
        for worker in self.workers if wait else ():
            worker.join(timeout=5)


_this_thread = threading.local()
"""`pool` is the service whose worker the calling thread is, or the BlockingThreads it is one of."""


Entry = tuple[Tasklet, OnDone]


class Worker:
    """One thread of the pool, which starts with its first tasklet. It calls its tasklets in turn,
    and sleeps for a moment after a round in which none of them made progress."""

    def __init__(self, service: ExecutionService, index: int, name: str, parking: Parking) -> None:
        self._service = service
        self.index = index
        self._parking = parking
        self.entries: list[Entry] = []
        """Other threads may append to it and read it; only the worker removes entries."""
        self.thread = threading.Thread(
            target=self._run, name=f"{name}-cooperative-{index}", daemon=True
        )
        self._lock = threading.Lock()
        self._started = False
        self._stopping = False

    def give(self, entries: list[Entry]) -> None:
        self.entries += entries
        self.wake()
        if not self._started:
            self.start()

    def stop(self) -> None:
        """Ends the worker as soon as it has no tasklets."""
        self._stopping = True
        self.wake()

    def wake(self) -> None:
        self._parking.wake()

    def join(self, timeout: float) -> None:
        """Waits for the end of the thread, unless it is the calling one or was never started."""
        if self._started and self.thread is not threading.current_thread():
            self.thread.join(timeout)

    def start(self) -> None:
        """Starts the thread, unless it runs already."""
        with self._lock:
            if not self._started:
                self.thread.start()
                self._started = True

    def _run(self) -> None:
        _this_thread.pool = self._service
        parking = self._parking
        park = SHORTEST_PARK
        while True:
            came = parking.turn()
            if not self.entries:
                if self._stopping:
                    return
                if not came:
                    parking.park(None)  # an idle service uses no CPU
            elif self._round() or came:
                park = SHORTEST_PARK
            elif self.entries:
                parking.park(park)
                park = min(2 * park, self._longest_park())

    def _longest_park(self) -> float:
        others = len(self._service.workers) > 1 or self._service.threads.is_busy
        return LONGEST_PARK if others else longest_park(tasklet for tasklet, _ in self.entries)

    def _round(self) -> bool:
        """Calls every tasklet once. Returns whether any made progress."""
        entries = self.entries
        progress = False
        position = 0
        while position < len(entries):
            tasklet, on_done = entries[position]
            if tasklet.taker is not None:
                taker, tasklet.taker = tasklet.taker, None
                del entries[position]
                taker.give([(tasklet, on_done)])
                continue
            answer = called(tasklet)
            if answer == DONE_NOW:
                progress = True
                del entries[position]
                tell_done(tasklet, on_done)
                if len(self._service.workers) > 1:
                    self._steal()
            else:
                progress = progress or answer != IDLE
                position += 1
        return progress

    def _steal(self) -> None:
        """Marks a tasklet of the busiest worker, if that one has enough more than this one; the
        owner then hands the tasklet over."""
        workers = self._service.workers
        target = worker_to_rob([len(worker.entries) for worker in workers], self.index)
        if target is None:
            return
        for tasklet, _ in tuple(workers[target].entries):
            if tasklet.taker is None:
                tasklet.taker = self
                return


def longest_park(tasklets: Iterable[Tasklet]) -> float:
    """How long a thread may sleep that calls all these tasklets, if no other thread brings them
    work without a wake."""
    return LONGEST_WAIT if all(tasklet.is_woken for tasklet in tasklets) else LONGEST_PARK


def called(tasklet: Tasklet) -> int:
    """Calls a tasklet. An error in it ends its execution, but never the thread."""
    try:
        return tasklet.call()
    except BaseException as error:
        logger.exception("a tasklet raised")
        tasklet.halt.fail(Failed(error))
        return DONE_NOW


def tell_done(tasklet: Tasklet, on_done: OnDone) -> None:
    try:
        on_done(tasklet)
    except BaseException:
        logger.exception("ending an execution raised")


class BlockingThreads:
    """Threads for calls that may block. Each call gets a thread at once; idle threads are kept for
    a while and reused."""

    IDLE_SECONDS = 10.0

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._free = 0
        self._threads: set[threading.Thread] = set()
        self._closed = False

    def run(self, call: Callable[[], None]) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                self._calls.put(call)
                return
            thread = threading.Thread(
                target=self._run, args=(call,), name=f"{self._name}-blocking", daemon=True
            )
            thread.start()  # under the lock: close() joins only threads that have started
            self._threads.add(thread)

    @property
    def is_busy(self) -> bool:
        """Whether any of the threads runs a call now."""
        return len(self._threads) > self._free

    def close(self, *, wait: bool) -> None:
        """Ends the idle threads at once, and the others after their current call."""
        with self._lock:
            self._closed = True
            for _ in range(self._free):
                self._calls.put(None)
            self._free = 0  # later calls get new threads
            threads = tuple(self._threads)
        for thread in threads if wait else ():
            if thread is not threading.current_thread():
                thread.join(timeout=5)

    def _run(self, call: Callable[[], None] | None) -> None:
        _this_thread.pool = self
        while call is not None:
            try:
                call()
            except BaseException:
                logger.exception("a call on a blocking thread raised")
            call = self._wait_for_call()
        with self._lock:
            self._threads.discard(threading.current_thread())

    def _wait_for_call(self) -> Callable[[], None] | None:
        with self._lock:
            if self._closed:
                return None
            self._free += 1
        try:
            return self._calls.get(timeout=self.IDLE_SECONDS)
        except Empty:
            with self._lock:
                if self._free:
                    self._free -= 1
                    return None
        return self._calls.get()  # run() has already taken this thread for a call


def run_alone(tasklet: Tasklet, on_done: OnDone) -> None:
    park = SHORTEST_PARK
    while True:
        answer = called(tasklet)
        if answer == DONE_NOW:
            tell_done(tasklet, on_done)
            return
        if answer == IDLE:
            time.sleep(park)
            park = min(2 * park, LONGEST_BLOCKING_PARK)
        else:
            park = SHORTEST_PARK
