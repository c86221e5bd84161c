"""Event loops on threads of their own. All async calls of all jobs in a process share one loop,
which runs only as long as somebody uses it."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from typing import Final, Protocol

from pyrite.forks import repair_after_fork
from pyrite.processors.services.nesting import LOOP_THREAD

logger = logging.getLogger("pyrite.services")

PATIENCE: Final = 10.0
"""How many seconds to wait for the user's code to end."""


class Loops(Protocol):
    def acquire(self) -> asyncio.AbstractEventLoop:
        """A loop that runs. Call `release` when it is not used any more."""

    def release(self, patience: float) -> None:
        """Waits for so many seconds until the thread has ended, if nobody else uses the loop."""


class SharedLoop:
    """The loop of this process. Its thread starts with the first user, and has ended when the last
    one has released the loop."""

    def __init__(self) -> None:
        self.after_fork()
        repair_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._thread: _LoopThread | None = None

    def acquire(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._thread is None:
                self._thread = _LoopThread(LOOP_THREAD)
            self._users += 1
            return self._thread.loop

    def release(self, patience: float) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop(patience)


class OwnLoop:
    """A loop for code that may block its thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: _LoopThread | None = None

    def acquire(self) -> asyncio.AbstractEventLoop:
        self._thread = _LoopThread(self._name)
        return self._thread.loop

    def release(self, patience: float) -> None:
        if self._thread is not None:
            self._thread.stop(patience)


shared_loop: Final = SharedLoop()


class _LoopThread:
    """A thread with a loop, which runs until `stop`."""

    def __init__(self, name: str) -> None:
        self._stopped = asyncio.Event()
        started: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name=name, daemon=True)
        self._thread.start()
        self.loop = started.result()

    def stop(self, patience: float) -> None:
        self.loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(patience)
        if self._thread.is_alive():
            logger.warning(
                "the thread '%s' goes on, because an async task ignores that it was cancelled, or "
                "a call blocks the thread",
                self._thread.name,
            )

    def _run(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        try:
            # A runner cancels the tasks that the user's code has left, and closes the loop.
            with asyncio.Runner() as runner:
                loop = runner.get_loop()
                serving = loop.create_task(self._serve(started))
                while not serving.done():
                    try:
                        loop.run_until_complete(serving)
                    except (SystemExit, KeyboardInterrupt) as error:
                        # asyncio stops the loop for these. Other jobs use it, so it goes on.
                        logger.warning("a task that a function has started raised %r", error)
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)  # for example, there are too many open files

    async def _serve(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        started.set_result(asyncio.get_running_loop())
        await self._stopped.wait()
