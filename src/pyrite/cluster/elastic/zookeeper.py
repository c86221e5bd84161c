"""The nodes of one member in ZooKeeper, and its look at those of the others.

    /pyrite/NAME/member/INCARNATION@HOST:PORT-NUMBER    it runs
    /pyrite/NAME/ready/INCARNATION@HOST:PORT-NUMBER     it may be used

All of them are ephemeral. One thread looks at what is there whenever something may have changed,
and does what is missing. While ZooKeeper does not answer, what it said last holds; connections
between members do not depend on it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from pyrite.cluster.elastic.registering import todo
from pyrite.cluster.elastic.roster import Node, Roster, parsed, prefix
from pyrite.wire.zookeeper import LastWarning

SESSION_SECONDS: Final = 10.0
"""After this time without a sign of life ZooKeeper removes the nodes of a member. Its servers may
be set to another limit, which then holds."""
RETRY_SECONDS: Final = 1.0
CLOSING_SECONDS: Final = 3.0

logger = logging.getLogger("pyrite.cluster.zookeeper")


class Registration:
    """`on_state` is called with whether ZooKeeper answers, and if not, why; `on_displaced` when
    another process has taken the address. Both are called on a thread of its own."""

    def __init__(
        self,
        servers: str,
        cluster: str,
        address: str,
        incarnation: str,
        *,
        on_state: Callable[[bool, str], None],
        on_displaced: Callable[[], None],
        session_seconds: float = SESSION_SECONDS,
    ) -> None:
        self._servers = servers
        self._session_seconds = session_seconds
        self._root = f"/pyrite/{cluster}"
        self._address = address
        self._incarnation = incarnation
        self._on_roster: Callable[[Roster], None] = lambda roster: None
        self._on_state = on_state
        self._on_displaced = on_displaced
        self._own: Node | None = None
        self._may_announce: Node | None = None
        self._session_is_new = threading.Event()
        self._changed = threading.Event()
        self._closing = False
        self._said: set[str] = set()
        self._last_warning = LastWarning(logger)
        self._client = self._new_client()
        self._thread = threading.Thread(target=self._run, name="pyrite-zookeeper", daemon=True)

    def start(self, on_roster: Callable[[Roster], None]) -> None:
        """Returns at once. It is tried for ever to reach ZooKeeper. `on_roster` is called with what
        it says, whenever that may have changed, on a thread of its own."""
        self._on_roster = on_roster
        self._thread.start()

    def announce(self, node: Node) -> None:
        """This member is ready, if it still has this node. Any thread may call this."""
        if self._may_announce != node:
            self._may_announce = node
            self._changed.set()

    def close(self) -> None:
        """Removes the nodes, by ending the session. If ZooKeeper does not answer soon, it removes
        them itself when the session has expired."""
        self._closing = True
        self._changed.set()
        closing = threading.Thread(target=self._end_session, daemon=True)
        closing.start()
        closing.join(CLOSING_SECONDS)
        self._thread.join(CLOSING_SECONDS)

    # Kazoo's threads call these.

    def _on_event(self, event: object) -> None:
        self._changed.set()

    def _on_session(self, state: str) -> None:
        if state == "LOST":
            self._session_is_new.set()
        self._changed.set()

    # The own thread.

    def _run(self) -> None:
        was_connected: bool | None = None
        self._client.start_async().wait(RETRY_SECONDS)
        while not self._closing:
            self._changed.clear()
            is_connected = bool(self._client.connected)
            if is_connected != was_connected:
                was_connected, since = is_connected, time.monotonic()
                self._on_state(is_connected, "" if is_connected else self._last_warning.text)
            if is_connected and self._look():
                self._changed.wait()
            elif self._changed.wait(RETRY_SECONDS) or is_connected:
                continue
            elif self._revive(time.monotonic() - since):
                since = time.monotonic()

    def _look(self) -> bool:
        """Sees what is there and does what is missing. False if that is to be tried again."""
        if self._session_is_new.is_set():
            self._session_is_new.clear()
            self._own = None
        try:
            registered, ready = self._nodes("member"), self._nodes("ready")
            found = todo(
                self._address,
                self._incarnation,
                self._own,
                registered,
                ready,
                may_announce=self._may_announce,
            )
            if found.displaced_by is not None:
                self._closing = True
                self._on_displaced()
                return True
            if found.create:
                self._own = self._create()
                return self._look()
            for node in found.delete:
                self._delete(node)
            if found.announce and self._own is not None:
                self._ask("create", f"{self._root}/ready/{self._own.name}", ephemeral=True)
        except _errors() as error:
            self._explain(error)
            return False
        self._on_roster(Roster.of(self._own, registered, ready))
        return True

    def _nodes(self, kind: str) -> list[Node]:
        from kazoo.exceptions import NoNodeError

        path = f"{self._root}/{kind}"
        try:
            names = self._ask("get_children", path, watch=self._on_event)
        except NoNodeError:
            self._ask("ensure_path", path)
            names = self._ask("get_children", path, watch=self._on_event)
        return parsed(names)

    def _create(self) -> Node | None:
        path = f"{self._root}/member/{prefix(self._address, self._incarnation)}"
        made = self._ask("create", path, ephemeral=True, sequence=True)
        return Node.parsed(str(made).rpartition("/")[2])

    def _delete(self, node: Node) -> None:
        from kazoo.exceptions import NoNodeError

        for kind in ("ready", "member"):
            try:
                self._ask("delete", f"{self._root}/{kind}/{node.name}")
            except NoNodeError:
                pass

    def _ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Calls a method of Kazoo's, which without a limit would wait for a connection."""
        asked = getattr(self._client, f"{method}_async")(*arguments, **options)
        return asked.get(timeout=self._session_seconds)

    def _explain(self, error: Exception) -> None:
        """Says each thing once; that there is no connection is said by `on_state`."""
        from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, SessionExpiredError

        is_known = isinstance(error, (ConnectionClosedError, ConnectionLoss, SessionExpiredError))
        if not is_known and repr(error) not in self._said:
            self._said.add(repr(error))
            logger.warning("ZooKeeper at %s refused: %r; trying again", self._servers, error)

    def _revive(self, seconds: float) -> bool:
        """Starts with another client of ZooKeeper, if this one cannot connect again. It gives up on
        a server that does not speak the protocol; and a server that has lost its data refuses those
        who have seen more than it has. After two sessions' time no session is left to save."""
        from kazoo.protocol.states import KeeperState

        gave_up = self._client.client_state == KeeperState.CLOSED
        if self._closing or not (gave_up or seconds > 2 * self._session_seconds):
            return False
        self._end_session()
        self._own = None
        self._client = self._new_client()
        self._client.start_async()
        return True

    def _end_session(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except Exception as error:  # of a client that was never connected, for one
            logger.info("the session could not be ended: %r", error)

    def _new_client(self) -> Any:
        from kazoo.client import KazooClient

        client = KazooClient(
            self._servers,
            timeout=self._session_seconds,
            connection_retry={"max_tries": -1, "delay": 0.05, "max_delay": RETRY_SECONDS},
            logger=self._last_warning.logger(),
        )
        client.add_listener(self._on_session)
        return client


def _errors() -> tuple[type[Exception], ...]:
    from kazoo.exceptions import KazooException
    from kazoo.handlers.threading import KazooTimeoutError

    return KazooException, KazooTimeoutError
