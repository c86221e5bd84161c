"""What only a store in ZooKeeper does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrite.durable.protocol.tree.writes import Delete, Put, Write
from pyrite.durable.store.deployment import Deployment
from pyrite.durable.store.opening import open_store
from pyrite.durable.store.store import EpochIsOver, Store, StoreError
from pyrite.durable.store.zookeeper import ZooKeeperStore
from tests.durable.store.conftest import SESSION, cluster
from tests.durable.store.places import Place
from tests.zookeeper import Ensemble, ZooKeeper


@pytest.fixture
def place(zookeeper: ZooKeeper) -> Iterator[Place]:
    place = cluster(zookeeper.address)
    yield place
    place.close()


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    ensemble = Ensemble(tmp_path_factory.mktemp("ensemble"), session=3)
    ensemble.start()
    yield ensemble
    ensemble.kill()


def test_a_secret_protects_all_nodes(zookeeper: ZooKeeper) -> None:
    place = cluster(zookeeper.address, "&secret=s%26t")
    store = place.open()
    store.transact(store.raise_epoch(), [Put("/job/j", "x")])
    store.create_ephemeral("/pulse/p")
    assert place.open().get("/job/j") == "x"
    for url, why in (
        (place.url.replace("s%26t", "wrong"), "has another secret; correct secret="),
        (place.url.replace("&secret=s%26t", ""), "is protected; add &secret="),
    ):
        with pytest.raises(StoreError, match=why):
            open_store(url)
    place.close()


def test_nobody_reads_a_node_without_the_secret(zookeeper: ZooKeeper) -> None:
    from kazoo.client import KazooClient
    from kazoo.exceptions import NoAuthError

    place = cluster(zookeeper.address, "&secret=word")
    place.open().create("/task/j/a-0", "x")
    root = Deployment.parse(place.url).root
    client = KazooClient(zookeeper.address)
    client.start()
    for path in ("", "/task", "/task/j", "/task/j/a-0"):
        with pytest.raises(NoAuthError):
            client.get(root + path)
    client.stop()
    client.close()
    place.close()


def test_a_secret_for_a_cluster_that_has_none_is_a_clear_error(place: Place) -> None:
    place.open()
    with pytest.raises(StoreError, match="was made without a secret; leave out secret="):
        open_store(place.url + "&secret=new")


def test_two_clusters_see_nothing_of_each_other(store: Store, zookeeper: ZooKeeper) -> None:
    other = cluster(zookeeper.address, "&secret=other")
    store.create("/job/j", "x")
    assert other.open().below("/") == {"/": ""}
    other.close()


def test_zookeeper_that_is_not_there_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(StoreError, match=rf"ZooKeeper at {address} cannot be reached .*start it"):
        ZooKeeperStore(Deployment.parse(f"zk://{address}/c"), connect_seconds=0.3)


def test_a_server_that_is_not_zookeeper_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            connection, _ = server.accept()
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(StoreError, match="cannot be reached"):
            ZooKeeperStore(Deployment.parse(f"zk://{address}/c?session=0.3"), connect_seconds=0.3)
        thread.join()


def test_more_nodes_than_fit_into_a_request_are_read_and_deleted(
    store: Store, other: Store
) -> None:
    epoch = store.raise_epoch()
    parts = [f"/task/j/{number:0300}" for number in range(3_000)]
    for start in range(0, len(parts), 1_000):
        writes: list[Write] = [Put(path, "x") for path in parts[start : start + 1_000]]
        store.transact(epoch, writes)
    assert sum(data == "x" for data in store.below("/task").values()) == len(parts)
    last: list[Write] = [Put("/job/j", "ended"), Delete("/task/j")]
    store.transact(epoch, last)
    assert store.children("/task") == []
    assert store.get("/job/j") == "ended"
    other.raise_epoch()
    with pytest.raises(EpochIsOver):
        store.transact(epoch, last)


def test_what_zookeeper_refuses_is_a_clear_error(store: Store) -> None:
    with pytest.raises(StoreError, match=r"ZooKeeper at .* refused: BadArgumentsError"):
        store.create("/job/\x01")


def test_a_transaction_that_is_too_large_is_a_clear_error(store: Store) -> None:
    epoch = store.raise_epoch()
    with pytest.raises(StoreError, match=r"of 2 writes has .* bytes; .*Do fewer writes at once"):
        store.transact(epoch, [Put("/a", "x" * 600_000), Put("/b", "x" * 600_000)])
    assert store.children("/") == ["coordinator"]


def test_a_transaction_and_others_who_create_below_what_it_deletes(
    store: Store, other: Store
) -> None:
    epoch = store.raise_epoch()
    stops = threading.Event()

    def create() -> None:
        while not stops.is_set():
            other.create("/task/j/a-0")
            other.create_child("/task/j/a-0/leader", "x")

    creating = threading.Thread(target=create)
    creating.start()
    for number in range(30):
        store.transact(epoch, [Delete("/task/j/a-0"), Put("/job/j", str(number))])
    stops.set()
    creating.join()
    assert store.get("/job/j") == "29"


def test_a_server_that_hangs_is_waited_for(tmp_path: Path) -> None:
    server = ZooKeeper(tmp_path, session=SESSION)
    server.start()
    store = open_store(f"zk://{server.address}/c?session={SESSION}")
    store.create("/job/j", "x")
    server.suspend()
    waker = threading.Timer(SESSION / 2, server.resume)
    waker.start()
    assert store.get("/job/j") == "x"
    waker.join()
    store.close()
    server.kill()


@pytest.mark.soak
def test_a_server_of_three_is_killed_and_nothing_is_lost(ensemble: Ensemble) -> None:
    """The leader, so that the others have to elect one."""
    place = cluster(ensemble.addresses)
    store, other = place.open(), place.open()
    store.create_ephemeral("/pulse/p")
    epoch = store.raise_epoch()
    store.transact(epoch, [Put("/job/before", "x")])
    other.watch("/job/after")
    killed = ensemble.leader()
    killed.kill()
    store.transact(epoch, [Put("/job/after", "y")])
    while other.watch("/job/after") != "y":
        assert other.changed(10) is not None
    assert other.get("/job/before") == "x"
    assert other.get("/pulse/p") == ""
    killed.start()
    place.close()


@pytest.mark.soak
def test_all_servers_are_killed_one_after_another_while_a_leader_writes(
    ensemble: Ensemble,
) -> None:
    place = cluster(ensemble.addresses)
    store = place.open()
    epoch, number = store.raise_epoch(), 0
    for server in ensemble.servers:
        restarted = threading.Thread(target=lambda server=server: (server.kill(), server.start()))
        restarted.start()
        while restarted.is_alive():
            store.transact(epoch, [Put(f"/written/{number}"), Put("/last", str(number))])
            number += 1
        restarted.join()
    assert len(place.open().children("/written")) == number
    assert store.get("/last") == str(number - 1)
    place.close()
