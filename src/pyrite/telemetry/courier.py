"""The courier: sends things in the background, in their order, so that no job waits for the
network.

Its one thread starts with the first thing and ends when there is nothing more to send. What cannot
be sent is dropped, with one warning until something can be sent again. At the end of the process,
or when the courier is closed, it waits a little for what is left: not at all if the last attempt
has failed."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  # it cannot be imported while the process ends
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any, Final, Generic, TypeVar

from pyrite.forks import repair_after_fork
from pyrite.functions import message_of

logger = logging.getLogger("pyrite.telemetry")

T = TypeVar("T")

MOST_WAITING: Final = 10_000
IDLE_SECONDS: Final = 0.2
"""How long the thread waits for more before it ends."""
CLOSING_SECONDS: Final = 5.0
"""How long a close may wait for a receiver that takes what it gets."""
PREPARING_SECONDS: Final = 10.0
"""How long it may wait until the library is imported, which has to be done once."""
HOPELESS_SECONDS: Final = 1.0
"""How long a receiver that has never taken anything may take, if a close waits for it."""
STUCK_SECONDS: Final = 0.05
"""How long it may wait for a thread whose receiver does not answer; the thread ends later."""


class Courier(Generic[T]):
    def __init__(
        self,
        name: str,
        receiver: str,
        prepare: Callable[[], Callable[[list[T]], object]],
        *,
        pause: float = 0.0,
        again: Callable[[], float | None] = lambda: None,
        settle: Callable[[], object] = lambda: None,
    ) -> None:
        """`prepare` is called once, on the thread of the courier: it imports the library and
        returns the function that sends. `receiver` is what warnings name. The thread rests for
        `pause` seconds after it has sent something. `again` says after how many seconds it sends
        again though there is nothing new; None if it need not. `settle` is called before the last
        things are sent: it posts what nobody has posted yet."""
        self._name = name
        self._receiver = receiver
        self._prepare = prepare
        self._pause = pause
        self._again = again
        self._settle = settle
        self._send: Callable[[list[T]], object] | None = None
        self._waiting: deque[T] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_sending = False
        self._fails = False
        self._has_sent = False
        self._began_at = 0.0
        """When the thread began to send."""
        self._hurries = 0
        self._has_dropped = False
        self._closed = False
        repair_after_fork(self)
        _couriers.add(self)

    def post(self, thing: T) -> None:
        """Returns at once."""
        with self._changed:
            if self._closed:
                return
            if len(self._waiting) >= MOST_WAITING:
                self._waiting.popleft()
                self._warn_of_drops()
            self._waiting.append(thing)
            self._start()

    def wake(self) -> None:
        """Has the thread ask `again`, though there is nothing to send."""
        with self._changed:
            if not self._closed:
                self._start()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def flush(self, seconds: float = CLOSING_SECONDS, *, gives_up: bool = False) -> bool:
        """Waits until all is sent. Returns False if that takes longer, or if sending fails. If it
        `gives_up`, it does not wait for a receiver that has just failed."""
        self._settle()
        with self._changed:
            self._hurries += 1
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: (
                    self._send is not None or (self._fails and gives_up) or not self._has_more()
                ),
                PREPARING_SECONDS,
            )
            until = time.monotonic() + seconds
            while self._has_more() and not (self._fails and gives_up):
                left = min(until, self._hopeless_at()) - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            self._hurries -= 1
            return not self._has_more() and not self._fails

    def _hopeless_at(self) -> float:
        """When there is no hope any more for a receiver that has never taken anything."""
        if self._has_sent or not self._is_sending:
            return inf
        return self._began_at + HOPELESS_SECONDS

    def close(self) -> None:
        """Sends what is left, if the receiver takes it, and ends the thread."""
        self.flush(gives_up=True)
        with self._changed:
            self._closed = True
            self._waiting.clear()
            thread = self._thread
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(STUCK_SECONDS)

    def after_fork(self) -> None:
        """What waits here is sent by the parent."""
        self._waiting.clear()
        self._changed = threading.Condition()
        self._thread = None
        self._send = None  # its connections are the parent's
        self._is_sending = False
        self._hurries = 0

    def _has_more(self) -> bool:
        return bool(self._waiting) or self._is_sending

    def _run(self) -> None:
        while (things := self._next()) is not None:
            try:
                send = self._send or self._prepared()
                self._began_at = time.monotonic()
                send(things)
                failed = None
            except Exception as error:
                failed = error
            self._sent(failed, something=bool(things))

    def _prepared(self) -> Callable[[list[T]], object]:
        with _preparing:
            send = self._prepare()
        with self._changed:
            self._send = send
            self._changed.notify_all()
        return send

    def _next(self) -> list[T] | None:
        """What to send next; None if the thread is to end."""
        with self._changed:
            again = self._again()
            self._changed.wait_for(
                lambda: self._waiting or self._closed or (self._hurries and again is None),
                IDLE_SECONDS if again is None else again,
            )
            if self._closed or (not self._waiting and again is None):
                self._thread = None
                return None
            things = list(self._waiting)
            self._waiting.clear()
            self._is_sending = True
            self._began_at = time.monotonic()
            return things

    def _sent(self, failed: Exception | None, *, something: bool) -> None:
        with self._changed:
            if failed is not None and not self._fails and not self._closed:
                logger.warning(
                    "cannot send to %s: %s; jobs go on without it",
                    self._receiver,
                    message_of(failed),
                )
            self._fails = failed is not None
            self._has_sent = self._has_sent or (failed is None and something)
            self._is_sending = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._hurries or self._closed, self._pause)

    def _warn_of_drops(self) -> None:
        if not self._has_dropped:
            self._has_dropped = True
            logger.warning(
                "%s takes too long: more than %d messages wait for it, and the oldest are dropped",
                self._receiver,
                MOST_WAITING,
            )


_couriers: weakref.WeakSet[Courier[Any]] = weakref.WeakSet()


def _flush_all() -> None:
    """A process that ends without closing anything still sends what it has."""
    until = time.monotonic() + CLOSING_SECONDS
    for courier in list(_couriers):
        courier.flush(max(0.0, until - time.monotonic()), gives_up=True)


# As the thread pools of the standard library do: what is registered with atexit is called later,
# when no thread can be started any more.
threading._register_atexit(_flush_all)  # type: ignore[attr-defined]


# A process that is forked while a thread imports a module could never import that module: its lock
# would stay taken. So a fork waits until nothing is imported here.
_preparing = threading.RLock()


def _before_fork() -> None:
    global _was_taken
    _was_taken = _preparing.acquire(timeout=PREPARING_SECONDS)


def _after_fork_in_parent() -> None:
    if _was_taken:
        _preparing.release()


def _after_fork_in_child() -> None:
    global _preparing
    _preparing = threading.RLock()


_was_taken = False
os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
