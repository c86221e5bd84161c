"""The nodes in ZooKeeper, for a deployment on many machines.

When a connection is lost, an answer may be lost with it. What was asked may then have been done;
each method says what that means for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from kazoo.client import TransactionRequest
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)

from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.writes import CloseQueues, Delete, Write
from pyrite.durable.store.deployment import Deployment
from pyrite.durable.store.exact import MOST_BYTES, Operation, Tree, ahead, exact, size
from pyrite.durable.store.limits import encoded, line_of, parent_of
from pyrite.durable.store.session import CONNECT_SECONDS, LOOK_SECONDS, NoAnswer, Session
from pyrite.durable.store.store import EpochIsOver, StoreError


class ZooKeeperStore:
    """See `Store`. Its calls wait while there is no connection, until the session has ended."""

    def __init__(self, deployment: Deployment, *, connect_seconds: float = CONNECT_SECONDS) -> None:
        self._root = deployment.root
        self._fired: SimpleQueue[str | None] = SimpleQueue()  # None: look around
        self._woken = threading.Event()
        self._proposals: set[str] = set()
        self._versions: dict[int, int] = {}
        self._known = Tree()
        self._session = Session(
            deployment, lambda: self._fired.put(None), connect_seconds=connect_seconds
        )

    # Reading

    def get(self, path: str) -> str | None:
        found = self._session.ask_all("get", [self._at(path)])[0]
        return None if found is None else found[0].decode()

    def children(self, path: str) -> list[str]:
        return sorted(self._session.ask_all("get_children", [self._at(path)])[0] or ())

    def below(self, *roots: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for path, (data, _) in self._walk("get", roots, lambda _, answer: answer[1].numChildren):
            found[path] = data.decode()
        return found

    # Writing

    def create(self, path: str, data: str = "") -> bool:
        """If an answer was lost, a node that came since, with this data, is taken for the own one.
        It may be another's who wrote the same at the same time."""
        return self._create(path, encoded(path, data))

    def create_child(self, path: str, data: str = "") -> bool | None:
        try:
            return self._create(path, encoded(path, data), with_parents=False)
        except NoNodeError:
            return None

    def set(self, path: str, data: str) -> bool:
        value = encoded(path, data)
        try:
            self._session.ask("set", self._at(path), value)
        except NoNodeError:
            return False
        return True

    def delete(self, path: str) -> None:
        writes = [Delete(path)]
        self._learn(writes)
        while operations := exact(writes, self._known):
            if size(operations) > MOST_BYTES:
                operations = ahead(writes, operations)
            try:
                self._commit(operations)
            except NoAnswer:
                pass
            self._learn(writes)

    def create_ephemeral(self, path: str, data: str = "") -> None:
        if not self._create(path, encoded(path, data), ephemeral=True):
            raise StoreError(f"the node {path} is there already, and belongs to another")

    def stand(self, path: str, data: str = "") -> str:
        """If an answer was lost, a proposal of this session that it does not know is the one."""
        prefix, value = self._at(f"{path}/proposal-"), encoded(path, data)
        name: str | None = None
        while name is None:
            try:
                made = self._session.ask_once(
                    "create", prefix, value, ephemeral=True, sequence=True
                )
                name = str(made).rpartition("/")[2]
            except NoNodeError:
                self._ensure(path)
            except NoAnswer:
                name = self._unknown_proposal(path)
        self._proposals.add(name)
        return name

    def raise_epoch(self) -> int:
        """If an answer was lost, the epoch may be raised twice. The number between is nobody's."""
        at = self._at(paths.EPOCH)
        while True:
            found = self._session.ask_all("get", [at])[0]
            try:
                if found is None:
                    self._create(paths.EPOCH, b"0")
                    continue
                epoch, version = int(found[0]) + 1, found[1].version
                value = str(epoch).encode()
                stat = self._session.ask_once("set", at, value, version)
            except (BadVersionError, NoAnswer, NoNodeError):
                self._session.sync()
                continue
            self._versions = {epoch: stat.version}
            return epoch

    def transact(self, epoch: int, writes: Sequence[Write]) -> None:
        """It guesses what is there by its earlier writes. If the guess is wrong ZooKeeper refuses
        the transaction; then it looks. If it has to delete more than fits into one request, nodes
        below are deleted first, in transactions that check the epoch, too. If an answer was lost,
        the writes are done again, which changes nothing; and EpochIsOver may be raised although
        they were done before."""
        unknown = [w for w in writes if isinstance(w, Delete) and w.path not in self._known]
        if unknown:
            self._learn(unknown)
        while True:
            version = self._version(epoch)
            operations = exact(writes, self._known)
            total = size(operations)
            if total > MOST_BYTES:
                operations = ahead(writes, operations)
                if not operations:
                    raise StoreError(
                        f"a transaction of {len(writes)} writes has {total:,} bytes; ZooKeeper"
                        f" takes {MOST_BYTES:,}. Do fewer writes at once"
                    )
            try:
                if self._commit(operations, version) and total <= MOST_BYTES:
                    return
            except NoAnswer:
                pass
            except BadVersionError:
                self._versions.pop(epoch, None)
            self._learn(writes)

    # Watching

    def watch(self, path: str) -> str | None:
        at, watcher = self._at(path), _Watcher(path, self._fired)
        while True:
            try:
                found, _ = self._session.ask("get", at, watcher)
                return str(found.decode())
            except NoNodeError:
                if self._session.ask("exists", at, watcher) is None:
                    return None

    def watch_all(self, paths: Sequence[str]) -> list[str | None]:
        watchers = [_Watcher(path, self._fired) for path in paths]
        found = self._session.ask_all("get", [self._at(path) for path in paths], watchers)
        return [
            self.watch(path) if answer is None else str(answer[0].decode())
            for path, answer in zip(paths, found)
        ]

    def watch_children(self, path: str) -> list[str]:
        at, watcher = self._at(path), _Watcher(path, self._fired)
        while True:
            try:
                return sorted(self._session.ask("get_children", at, watcher))
            except NoNodeError:
                if self._session.ask("exists", at, watcher) is None:
                    return []

    def changed(self, timeout: float | None) -> str | None:
        give_up = None if timeout is None else time.monotonic() + timeout
        while True:
            if self._woken.is_set():
                self._woken.clear()
                return None
            self._session.check()
            left = LOOK_SECONDS if give_up is None else give_up - time.monotonic()
            try:
                path = self._fired.get(timeout=max(0.0, min(left, LOOK_SECONDS)))
            except Empty:
                if left <= 0:
                    return None
            else:
                if path is not None:
                    return path

    def wake(self) -> None:
        self._woken.set()
        self._fired.put(None)

    def close(self) -> None:
        self._session.close()

    # Within

    def _at(self, path: str) -> str:
        return self._root + path.rstrip("/")

    def _ensure(self, path: str) -> None:
        self._session.ask("ensure_path", self._at(path))

    def _create(
        self, path: str, value: bytes, *, with_parents: bool = True, ephemeral: bool = False
    ) -> bool:
        at, since, is_unsure = self._at(path), self._session.client.last_zxid, False
        while True:
            try:
                self._session.ask_once("create", at, value, ephemeral=ephemeral)
                return True
            except NoAnswer:
                is_unsure = True
            except NoNodeError:
                if not with_parents:
                    raise
                self._ensure(parent_of(path))
            except NoChildrenForEphemeralsError as error:
                raise StoreError(
                    f"the node {path} cannot be below {parent_of(path)}, which is ephemeral"
                ) from error
            except NodeExistsError:
                if not is_unsure:
                    return False
                self._session.sync()
                found = self._session.ask_all("get", [at])[0]
                if found is not None:
                    data, stat = found
                    owner = self._session.id if ephemeral else 0
                    return bool(
                        data == value and stat.czxid > since and stat.ephemeralOwner == owner
                    )

    def _unknown_proposal(self, path: str) -> str | None:
        self._session.sync()
        names = [name for name in self.children(path) if name not in self._proposals]
        stats = self._session.ask_all("exists", [self._at(f"{path}/{name}") for name in names])
        own = self._session.id
        return next((n for n, s in zip(names, stats) if s and s.ephemeralOwner == own), None)

    def _version(self, epoch: int) -> int:
        """The version of the node with the epoch, which ZooKeeper checks."""
        for is_last in (False, True):
            if epoch not in self._versions:
                found = self._session.ask_all("get", [self._at(paths.EPOCH)])[0]
                current = int(found[0]) if found else 0
                if found and current == epoch:
                    self._versions = {epoch: found[1].version}
                elif is_last:
                    raise EpochIsOver.of(epoch, current)
                else:
                    self._session.sync()
        return self._versions[epoch]

    def _learn(self, writes: Sequence[Write]) -> None:
        """Sees which of the nodes are there, and of those to delete, what is below."""
        self._session.sync()  # ZooKeeper would not notice that a node to delete is there after all
        doomed = {write.path for write in writes if isinstance(write, Delete)}
        asked = {p for w in writes if not isinstance(w, CloseQueues) for p in line_of(w.path)}
        top = frozenset(doomed)

        def goes_on(path: str, stat: Any) -> bool:
            if stat.numChildren == 0 or not (path in doomed or parent_of(path) in doomed):
                return False
            doomed.add(path)
            return True

        found = {path: None for path, _ in self._walk("exists", asked, goes_on)}
        for path in asked:
            if path not in found or path in top:
                self._known.remove(path)
        for path in found:
            self._known.add(path)

    def _walk(
        self, method: str, roots: Iterable[str], goes_on: Callable[[str, Any], object]
    ) -> Iterator[tuple[str, Any]]:
        """What is there of the roots and of what is below, level by level."""
        level = list(dict.fromkeys(roots))
        while level:
            answers = self._session.ask_all(method, [self._at(path) for path in level])
            found = [(path, answer) for path, answer in zip(level, answers) if answer is not None]
            yield from found
            above = [path for path, answer in found if goes_on(path, answer)]
            names = self._session.ask_all("get_children", [self._at(path) for path in above])
            level = [
                f"{path.rstrip('/')}/{name}"
                for path, each in zip(above, names)
                for name in each or ()
            ]

    def _commit(self, operations: Sequence[Operation], version: int | None = None) -> bool:
        """Does them in one step. False, and no change, if other nodes are there than was thought.
        Raises BadVersionError if the epoch has not this version."""
        self._session.check()
        request = TransactionRequest(self._session.client)
        if version is not None:
            request.check(self._at(paths.EPOCH), version)
        for kind, path, data in operations:
            if kind == "check":
                request.check(self._at(path), -1)
            elif kind == "create":
                request.create(self._at(path), data)
            elif kind == "set":
                request.set_data(self._at(path), data)
            else:
                request.delete(self._at(path))
        results = self._session.answer(request.commit_async())
        not_done = (RolledBackError, RuntimeInconsistency)
        if version is not None and isinstance(results[0], (BadVersionError, NoNodeError)):
            raise BadVersionError
        for result in results:
            if isinstance(result, (NoNodeError, NodeExistsError, NotEmptyError)):
                return False
            if isinstance(result, KazooException) and not isinstance(result, not_done):
                raise self._session.refused(result) from result
        return True


@dataclass(frozen=True, slots=True)
class _Watcher:
    """What Kazoo calls when a watch fires, on a thread of its own; also when the connection is lost
    and the watch with it. Kazoo calls those that are equal once."""

    path: str
    fired: SimpleQueue[str | None]

    def __call__(self, event: object) -> None:
        self.fired.put(self.path)
