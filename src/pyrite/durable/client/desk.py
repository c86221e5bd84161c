"""One thread that uses the store for all threads of a client: it does what they ask for, and tells
them when a node that they watch has changed."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from pyrite.durable.store.store import SessionLost, Store, StoreError
from pyrite.errors import PyriteError
from pyrite.forks import repair_after_fork

logger = logging.getLogger("pyrite.durable")

T = TypeVar("T")
LONGEST_WAIT: Final = 60.0
RETRY_SECONDS: Final = 1.0


class Desk:
    """The store is opened with the first request, and opened again when its session is lost."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._requests: deque[tuple[Future[Any], Callable[[Store], Any]]] = deque()
        self._watched: dict[str, Callable[[str | None], bool]] = {}
        self._held: set[str] = set()
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        repair_after_fork(self)

    def ask(self, act: Callable[[Store], T], *, seconds: float | None = None) -> T:
        """What `act` returns or raises, on the thread of the store. It is called again if the
        session is lost meanwhile, so it must be harmless to repeat it. Raises TimeoutError after
        `seconds`; then it is not called any more, but a call that has begun goes on."""
        future = self.post(act)
        try:
            return future.result(seconds)
        except TimeoutError:
            if future.cancel():
                raise
            return future.result()  # it was done at the last moment

    def post(self, act: Callable[[Store], T]) -> Future[T]:
        """As `ask`, without waiting. Nothing is done for a future that is cancelled."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise PyriteError("this instance is closed; open another with pyrite.instance()")
            self._requests.append((future, act))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="pyrite-durable-desk", daemon=True
                )
                self._thread.start()
            store = self._store
        if store is not None:
            store.wake()
        return future

    def watch(self, path: str, tell: Callable[[str | None], bool]) -> None:
        """Calls `tell` with the data of a node, now and whenever it changes, until it returns
        True. It must not block."""

        def begin(store: Store) -> None:
            self._watched[path] = tell
            self._look(store, path)

        self.ask(begin)

    @contextmanager
    def holding(self, path: str) -> Iterator[None]:
        """An ephemeral node is there meanwhile; again in a new session, if this one is lost."""

        def begin(store: Store) -> None:
            if path not in self._held:  # else a new session has created it
                self._held.add(path)
                store.create_ephemeral(path)

        def end(store: Store) -> None:
            self._held.discard(path)
            store.delete(path)

        try:
            self.ask(begin)
            yield
        finally:
            try:
                self.ask(end)
            except PyriteError as error:
                self._held.discard(path)
                logger.debug("the node %s goes with the session: %s", path, error)

    def after_fork(self) -> None:
        """In a child process, where the thread is not: it starts with the next request."""
        self._lock = threading.Lock()
        self._requests = deque()
        self._watched = {}
        self._held = set()
        self._store = None
        self._thread = None

    def close(self, *, seconds: float = 5.0) -> None:
        """Waits up to `seconds` for what is being done."""
        with self._lock:
            self._closed = True
            store, thread = self._store, self._thread
        if store is not None:
            store.wake()
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def _run(self) -> None:
        while not self._closed:
            try:
                store = self._open_store()
            except BaseException as error:
                self._refuse(error)
                if not self._watched:
                    with self._lock:
                        if not self._requests:
                            self._thread = None
                            return
                threading.Event().wait(RETRY_SECONDS)
                continue
            self._store = store
            try:
                for path in list(self._held):
                    store.delete(path)  # it may be there until the old session has ended
                    store.create_ephemeral(path)
                for path in list(self._watched):
                    self._look(store, path)
                self._serve(store)
            except SessionLost as lost:
                logger.info("the session of this client is lost and is opened again: %s", lost)
            except StoreError as error:
                logger.warning("the store cannot be used: %s", error)
                threading.Event().wait(RETRY_SECONDS)
            finally:
                self._store = None
                try:
                    store.close()
                except Exception:
                    logger.debug("closing the store raised", exc_info=True)
        self._refuse(PyriteError("this instance is closed; open another with pyrite.instance()"))

    def _serve(self, store: Store) -> None:
        while not self._closed:
            while self._requests:
                self._do(store)
            path = store.changed(0.0 if self._requests else LONGEST_WAIT)
            while path is not None:
                if path in self._watched:
                    self._look(store, path)
                path = store.changed(0.0)

    def _do(self, store: Store) -> None:
        future, act = self._requests.popleft()
        if future.cancelled():
            return
        try:
            answer = act(store)
        except SessionLost:
            self._requests.appendleft((future, act))  # it is asked again in a new session
            raise
        except BaseException as error:
            with suppress(InvalidStateError):  # nobody waits any more
                future.set_exception(error)
        else:
            with suppress(InvalidStateError):
                future.set_result(answer)

    def _look(self, store: Store, path: str) -> None:
        data = store.watch(path)
        try:
            is_over = self._watched[path](data)
        except Exception:
            logger.exception("what %s says cannot be understood", path)
            is_over = True
        if is_over:
            del self._watched[path]

    def _refuse(self, error: BaseException) -> None:
        while self._requests:
            with suppress(InvalidStateError):
                self._requests.popleft()[0].set_exception(error)
