"""The courier: sends things in the background, in their order, so that no job waits for the
network.

Its one thread starts with the first thing and ends when there is nothing more to send. What cannot
be sent is dropped, with one warning until something can be sent again. At the end of the process,
or when the courier is closed, it waits a little for what is left: not at all if the last attempt
has failed, and not for long if the receiver takes longer than it ever has."""

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
from pyrite.watching.secrets import without_secrets

logger = logging.getLogger("pyrite.telemetry")

T = TypeVar("T")

MOST_WAITING: Final = 10_000
IDLE_SECONDS: Final = 0.2
"""How long the thread waits for more before it ends."""
CLOSING_SECONDS: Final = 5.0
"""How long a close may wait for a receiver that takes what it gets, one after the other."""
PREPARING_SECONDS: Final = 10.0
"""How long it may wait until the library is imported, which has to be done once."""
PATIENCE_SECONDS: Final = 0.4
"""How long a close waits for an answer, at least."""
PATIENCE_FACTOR: Final = 3.0
"""A close waits for an answer that many times as long as the slowest one has taken until now."""
ROUND_TRIPS: Final = 15.0
"""A close waits for an answer that many times as long as it took to connect: an address is looked
up, keys are exchanged, and what is sent takes several round trips."""
STUCK_SECONDS: Final = 0.05
"""How long it may wait for a thread whose receiver does not answer; the thread ends later."""


class Courier(Generic[T]):
    def __init__(
        self,
        name: str,
        receiver: str,
        prepare: Callable[[], Callable[[list[T]], object]],
        *,
        reach: Callable[[], object] = lambda: None,
        at_once: int = MOST_WAITING,
        pause: float = 0.0,
        again: Callable[[], float | None] = lambda: None,
        settle: Callable[[], object] = lambda: None,
    ) -> None:
        """`prepare` is called once, on the thread of the courier: it imports the library and
        returns the function that sends. Before that it calls `reach`, which raises OSError if
        nobody listens: then nothing is imported. `receiver` is what warnings name. At most
        `at_once` things are sent together. The thread rests for `pause` seconds after it has sent
        something. `again` says after how many seconds it sends again though there is nothing new;
        None if it need not. `settle` is called before the last things are sent: it posts what
        nobody has posted yet."""
        self._name = name
        self._receiver = receiver
        self._prepare = prepare
        self._reach = reach
        self._at_once = at_once
        self._pause = pause
        self._again = again
        self._settle = settle
        self._send: Callable[[list[T]], object] | None = None
        self._waiting: deque[T] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_sending = False
        self._fails = False
        self._began_at = 0.0
        """When the thread began to send, or to import."""
        self._patience = PATIENCE_SECONDS
        self._is_importing = False
        self._prepared_at = -inf
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
        self.settle()
        with self._changed:
            if self._closed:
                return False
            self._hurries += 1
            self._changed.notify_all()
            until = time.monotonic() + seconds
            while self._has_more() and not (self._fails and gives_up):
                left = self._waits_until(until, gives_up=gives_up) - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            self._hurries -= 1
            if gives_up and self._has_more() and not self._fails:
                logger.warning(
                    "%s does not answer; the last messages to it may be lost", self._receiver
                )
            return not self._has_more() and not self._fails

    def _waits_until(self, until: float, *, gives_up: bool) -> float:
        if self._is_importing:
            return self._began_at + PREPARING_SECONDS
        if self._send is not None:
            until = max(until, self._prepared_at + CLOSING_SECONDS)
        return min(until, self._began_at + self._patience if self._is_sending and gives_up else inf)

    def settle(self) -> None:
        """Posts what nobody has posted yet."""
        if self._closed:
            return
        try:
            self._settle()
        except Exception:  # what is known already is sent all the same
            logger.warning("not all can be sent to %s", self._receiver, exc_info=True)

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
        self._is_sending = self._is_importing = False
        self._hurries = 0

    def _has_more(self) -> bool:
        return bool(self._waiting) or self._is_sending

    def _run(self) -> None:
        while (things := self._next()) is not None:
            try:
                send = self._send or self._prepared()
                send(things)
                failed = None
                if things:
                    self._be_patient(PATIENCE_FACTOR * (time.monotonic() - self._began_at))
            except Exception as error:
                failed = error
            self._sent(failed)

    def _be_patient(self, seconds: float) -> None:
        self._patience = max(self._patience, seconds)

    def _prepared(self) -> Callable[[list[T]], object]:
        self._reach()
        self._be_patient(ROUND_TRIPS * (time.monotonic() - self._began_at))
        self._begin(is_importing=True)
        try:
            with _preparing:
                self._send = send = self._prepare()
            self._prepared_at = time.monotonic()
            return send
        finally:
            self._begin(is_importing=False)

    def _begin(self, *, is_importing: bool) -> None:
        with self._changed:
            self._is_importing = is_importing
            self._began_at = time.monotonic()
            self._changed.notify_all()

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
            count = min(self._at_once, len(self._waiting))
            things = [self._waiting.popleft() for _ in range(count)]
            self._is_sending = True
            self._began_at = time.monotonic()
            self._changed.notify_all()
            return things

    def _sent(self, failed: Exception | None) -> None:
        with self._changed:
            if failed is not None and not self._fails and not self._closed:
                logger.warning(
                    "cannot send to %s: %s; jobs go on without it",
                    self._receiver,
                    without_secrets(message_of(failed)),
                )
            self._fails = failed is not None
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
    couriers = list(_couriers)
    for courier in couriers:  # so that all of them send at the same time
        courier.settle()
    for courier in couriers:
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
