"""One session with ZooKeeper: how it begins, what is asked in it, and how it ends.

Kazoo goes on with a new session when one has expired. Here a session that has ended stays so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

from pyrite.durable.store.deployment import Deployment
from pyrite.durable.store.store import SessionLost, StoreError
from pyrite.wire.zookeeper import LastWarning

CONNECT_SECONDS: Final = 10.0
PATIENCE: Final = 3
"""So many session time-outs without a connection end a session, at the latest. The servers may have
ended it after one; but if they elect a leader, they wait for their clients."""
LOOK_SECONDS: Final = 0.1

LOST_ANSWER: Final = (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
)
EXPECTED: Final = (
    BadVersionError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
)

logger = logging.getLogger("pyrite.durable.zookeeper")


class NoAnswer(Exception):
    """The connection was lost before the answer came: what was asked may have been done or not."""


class Session:
    """`on_end` is called when the session has ended, on a thread of Kazoo's."""

    def __init__(
        self,
        deployment: Deployment,
        on_end: Callable[[], None],
        *,
        connect_seconds: float = CONNECT_SECONDS,
    ) -> None:
        self._deployment = deployment
        self._on_end = on_end
        self._warning = LastWarning(logger)
        self._down_since: float | None = None
        self._ended = ""
        self._is_closed = False
        secret = deployment.secret
        self.client: Any = KazooClient(
            ",".join(deployment.hosts),
            timeout=deployment.session,
            connection_retry={"max_tries": -1, "delay": 0.02, "max_delay": 0.5},
            default_acl=OPEN_ACL_UNSAFE if secret is None else CREATOR_ALL_ACL,
            auth_data=None if secret is None else [("digest", f"pyrite:{secret}")],
            logger=self._warning.logger(),
        )
        self.client.add_listener(self._on_state)
        self._connect(connect_seconds)
        self.id: int = self.client.client_id[0]
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    @property
    def place(self) -> str:
        return f"ZooKeeper at {','.join(self._deployment.hosts)}"

    def check(self) -> None:
        """Raises if the session has ended."""
        if self._is_closed:
            raise StoreError(f"the session with {self.place} was closed")
        since, patience = self._down_since, PATIENCE * self._deployment.session
        if since is not None and time.monotonic() - since > patience:
            self._ended = f"there was no connection for {patience:g} s ({self._warning.text})"
        if self._ended:
            self._stop()  # else Kazoo would go on, and could keep alive what others think dead
            raise SessionLost(f"the session with {self.place} has ended: {self._ended}")

    def ask_once(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Calls a method of Kazoo's. Raises NoAnswer if the connection is lost. Waits as long as
        there is hope for a connection."""
        self.check()
        return self.answer(getattr(self.client, f"{method}_async")(*arguments, **options))

    def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """The same for what can be repeated: it asks until there is an answer."""
        while True:
            try:
                return self.ask_once(method, *arguments, **options)
            except NoAnswer:
                time.sleep(0.01)

    def answer(self, asked: Any) -> Any:
        """Waits for what one of Kazoo's `..._async` methods has asked for."""
        while True:
            try:
                answer = asked.get(timeout=LOOK_SECONDS)
                self.check()  # it may be the answer to a new session of Kazoo's
                return answer
            except KazooTimeoutError:
                self.check()
            except LOST_ANSWER as error:
                self.check()
                raise NoAnswer from error
            except EXPECTED:
                raise
            except KazooException as error:
                # The sentence says it all, and a command would print the frames of Kazoo.
                raise self.refused(error) from None

    def ask_all(self, method: str, paths: Sequence[str], *watchers: Sequence[Any]) -> list[Any]:
        """Asks the same of many nodes, without waiting for one answer after the other. The answer
        of a node that is not there is None."""
        while True:
            self.check()
            ask = getattr(self.client, f"{method}_async")
            try:
                asked = [ask(*each) for each in zip(paths, *watchers)]
                return [self._answer_or_none(one) for one in asked]
            except NoAnswer:
                time.sleep(0.01)

    def sync(self) -> None:
        """From now on this session sees all that was done until now, by anybody."""
        self.ask("sync", self._deployment.root)

    def close(self) -> None:
        self._is_closed = True
        self._stop()

    # Within

    def _connect(self, seconds: float) -> None:
        give_up = time.monotonic() + seconds
        is_live = self.client.start_async()
        while not is_live.wait(LOOK_SECONDS):
            if time.monotonic() > give_up or self.client.client_state == KeeperState.CLOSED:
                self._stop()
                raise StoreError(
                    f"{self.place} cannot be reached ({self._warning.text}); start it, or correct"
                    " the hosts in the URL"
                )

    def _begin(self) -> None:
        """Makes the node of the cluster, and sees whether this session may use it."""
        root = self._deployment.root
        for path, acl in (("/pyrite", OPEN_ACL_UNSAFE), (root, None)):
            try:
                self.ask("create", path, b"", acl=acl)
            except NodeExistsError:
                pass
        self.ask("get_children", root)
        acls, _ = self.ask("get_acls", root)
        if self._deployment.secret is not None and acls == OPEN_ACL_UNSAFE:
            raise StoreError(
                f"the cluster {self._deployment.cluster!r} in {self.place} was made without a"
                " secret; leave out secret=, or use another name for the cluster"
            )

    def _answer_or_none(self, asked: Any) -> Any:
        try:
            return self.answer(asked)
        except NoNodeError:
            return None

    def refused(self, error: KazooException) -> StoreError:
        cluster = f"the cluster {self._deployment.cluster!r} in {self.place}"
        if not isinstance(error, NoAuthError):
            return StoreError(f"{self.place} refused: {error!r}")
        if self._deployment.secret is None:
            return StoreError(f"{cluster} is protected; add &secret=... to the URL")
        return StoreError(f"{cluster} has another secret; correct secret= in the URL")

    def _on_state(self, state: str) -> None:
        """Kazoo's thread calls it."""
        if state == KazooState.CONNECTED:
            self._down_since = None
        elif state == KazooState.SUSPENDED:
            self._down_since = time.monotonic()
        else:
            self._ended = self._ended or "it has expired"
            self._on_end()

    def _stop(self) -> None:
        try:
            self.client.stop()
            self.client.close()
        except Exception as error:  # of a client that was never connected, for one
            logger.info("the session could not be ended: %r", error)
