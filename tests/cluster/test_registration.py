"""The nodes of a member in a real ZooKeeper, without the member."""

from __future__ import annotations

import logging
import queue
import shutil
import signal
from collections.abc import Callable, Iterator
from logging.handlers import QueueHandler
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, make_acl

from pyrite.cluster.elastic.roster import Roster
from pyrite.cluster.elastic.zookeeper import Registration
from tests.zookeeper import ZooKeeper

SECONDS = 20


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path, session=1)
    server.start()
    yield server
    server.kill()


class Registered:
    """A registration that announces itself as soon as it has a node."""

    def __init__(self, zookeeper: ZooKeeper, address: str, incarnation: str = "00") -> None:
        self._rosters: queue.Queue[Roster] = queue.Queue()
        self._states: queue.Queue[bool] = queue.Queue()
        self.displaced: queue.Queue[None] = queue.Queue()
        self._registration = Registration(
            zookeeper.address,
            "c",
            address,
            incarnation,
            on_state=lambda is_connected, why: self._states.put(is_connected),
            on_displaced=lambda: self.displaced.put(None),
            session_seconds=1,
        )
        self._registration.start(self._listed)

    def _listed(self, roster: Roster) -> None:
        if roster.own is not None:
            self._registration.announce(roster.own)
        self._rosters.put(roster)

    def until_roster(self, is_so: Callable[[Roster], bool]) -> Roster:
        while not is_so(roster := self._rosters.get(timeout=SECONDS)):
            pass
        return roster

    def until_state(self, state: bool) -> None:
        while self._states.get(timeout=SECONDS) is not state:
            pass

    def close(self) -> None:
        self._registration.close()


def ready(count: int) -> Callable[[Roster], bool]:
    return lambda roster: len(roster.ready) == len(roster.nodes) == count


@pytest.fixture
def pair(zookeeper: ZooKeeper) -> Iterator[tuple[Registered, Registered]]:
    pair = Registered(zookeeper, "a:1"), Registered(zookeeper, "b:1")
    yield pair
    for each in pair:
        each.close()


def test_both_see_the_same_and_one_that_leaves_is_gone_at_once(
    pair: tuple[Registered, Registered],
) -> None:
    a, b = pair
    assert a.until_roster(ready(2)).nodes == b.until_roster(ready(2)).nodes
    b.close()
    assert [node.address for node in a.until_roster(ready(1)).nodes] == ["a:1"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_after_an_outage_each_has_one_node(
    pair: tuple[Registered, Registered], zookeeper: ZooKeeper, number: signal.Signals
) -> None:
    for each in pair:
        each.until_roster(ready(2))
    if number == signal.SIGKILL:
        zookeeper.kill()
    else:
        zookeeper.suspend()
    for each in pair:
        each.until_state(False)
    if number == signal.SIGKILL:
        zookeeper.start()
    else:
        zookeeper.resume()
    for each in pair:
        each.until_state(True)
        each.until_roster(ready(2))


def test_members_register_with_a_server_that_has_lost_its_data(
    pair: tuple[Registered, Registered], zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    for each in pair:
        each.until_roster(ready(2))
    zookeeper.kill()
    shutil.rmtree(tmp_path / "data")
    zookeeper.start()
    for each in pair:
        each.until_state(False)
        each.until_roster(ready(2))


def test_of_two_processes_with_one_address_the_newer_stays(zookeeper: ZooKeeper) -> None:
    old = Registered(zookeeper, "a:1", "01")
    old.until_roster(ready(1))
    new = Registered(zookeeper, "a:1", "02")
    old.displaced.get(timeout=SECONDS)
    (node,) = new.until_roster(ready(1)).nodes
    assert node.incarnation == "02"
    old.close()
    new.close()


def test_a_refusal_is_told_and_tried_again(zookeeper: ZooKeeper) -> None:
    said: queue.Queue[logging.LogRecord] = queue.Queue()
    handler = QueueHandler(said)
    logging.getLogger("pyrite.cluster.zookeeper").addHandler(handler)
    admin = KazooClient(zookeeper.address)
    admin.start()
    admin.create("/pyrite", acl=[make_acl("world", "anyone", read=True, admin=True)])
    registered = Registered(zookeeper, "a:1")
    assert "NoAuthError" in said.get(timeout=SECONDS).getMessage()
    admin.set_acls("/pyrite", OPEN_ACL_UNSAFE)
    registered.until_roster(ready(1))
    registered.close()
    admin.stop()
    admin.close()
    logging.getLogger("pyrite.cluster.zookeeper").removeHandler(handler)
