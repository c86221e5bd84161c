"""The execution service: a fixed pool of workers that run tasklets in turn, and threads for what
may block."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Final

from pyrite.engine.failure import Failed
from pyrite.engine.parking import Parking
from pyrite.engine.stealing import worker_to_rob
from pyrite.engine.tasklets import DONE_NOW, IDLE, Tasklet

SHORTEST_PARK: Final = 25e-6
LONGEST_PARK: Final = 500e-6
LONGEST_BLOCKING_PARK: Final = 5e-3

logger = logging.getLogger("pyrite.engine")

OnDone = Callable[[Tasklet], None]


def default_pool_size() -> int:
    """One worker where a global lock lets only one thread run Python anyway; else one per CPU."""
    import os

    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return 1 if gil else os.cpu_count() or 1


class ExecutionService:
    """Runs tasklets until they are done. `on_done` is called for each, from the thread that ran it
    last."""

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
        for worker in self.workers:
            worker.thread.start()

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

    def close(self, *, wait: bool = True) -> None:
        """Stops the workers once their tasklets are done, and waits for that. The tasklets must
        have been told to halt."""
        if self._closed:
            return
        self._closed = True
        for worker in self.workers:
            worker.stop()
        self.threads.close(wait=wait)
        for worker in self.workers if wait else ():
            if worker.thread is not threading.current_thread():
                worker.thread.join(timeout=5)


Entry = tuple[Tasklet, OnDone]


class Worker:
    """One thread of the pool. It goes round its tasklets, and parks when none of them got on."""

    def __init__(self, service: ExecutionService, index: int, name: str, parking: Parking) -> None:
        self._service = service
        self.index = index
        self._parking = parking
        self.entries: list[Entry] = []
        """Others may add to its end and look at it; only the worker itself takes out."""
        self.thread = threading.Thread(
            target=self._run, name=f"{name}-cooperative-{index}", daemon=True
        )
        self._stopping = False

    def give(self, entries: list[Entry]) -> None:
        self.entries += entries
        self._parking.wake()

    def stop(self) -> None:
        """Ends the worker once it has no tasklets."""
        self._stopping = True
        self._parking.wake()

    def _run(self) -> None:
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
                park = min(2 * park, LONGEST_PARK)

    def _round(self) -> bool:
        """Calls every tasklet once. Returns whether any got on."""
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
        """Asks the worker that has most to do for one of its tasklets, if it has enough more."""
        workers = self._service.workers
        target = worker_to_rob([len(worker.entries) for worker in workers], self.index)
        if target is None:
            return
        for tasklet, _ in tuple(workers[target].entries):
            if tasklet.taker is None:
                tasklet.taker = self
                return


def called(tasklet: Tasklet) -> int:
    """Calls a tasklet. Whatever goes wrong in it is the end of its execution, never of the
    thread."""
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
    """Threads for what may block: each call gets one at once, and threads that are free are used
    again for a while."""

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
            self._threads.add(thread)
        thread.start()

    def close(self, *, wait: bool) -> None:
        """Lets the free threads end. One that is still at work ends after it."""
        with self._lock:
            self._closed = True
            for _ in range(self._free):
                self._calls.put(None)
            self._free = 0  # what is still to be run gets a thread of its own
            threads = tuple(self._threads)
        for thread in threads if wait else ():
            if thread is not threading.current_thread():
                thread.join(timeout=5)

    def _run(self, call: Callable[[], None] | None) -> None:
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
        return self._calls.get()  # it was counted as free, and a call is on its way to it


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
