"""Named maps and lists in Redis: faults, forks, and what jobs write."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pyrite
from pyrite import DAG, Instance, JobFailed, PyriteError, between
from pyrite import processors as p
from pyrite.cluster import LocalCluster
from pyrite.collections import redis_at
from pyrite.collections.redis import CollectionsUnavailable, RedisCollections
from pyrite.collections.stored.values import CannotStore
from pyrite.context import ProcessorContext
from pyrite.processor import AbstractProcessor
from tests.cluster.test_faults import wait_for_new_incarnation
from tests.redis_server import RedisServer
from tests.test_forks import in_child


@pytest.fixture
def stored(redis: RedisServer) -> Iterator[RedisCollections]:
    with opened(redis.url) as collections:
        yield collections


@contextmanager
def opened(url: str) -> Iterator[RedisCollections]:
    collections = redis_at(url)
    assert collections is not None
    try:
        yield collections
    finally:
        collections.close()


@pytest.fixture
def pyr(redis: RedisServer) -> Iterator[Instance]:
    with pyrite.instance(collections=redis.url) as instance:
        yield instance


def writing(supplier: Any, sink: Any) -> DAG:
    dag = DAG()
    source, end = dag.vertex("source", supplier), dag.vertex("sink", sink)
    return dag.edge(between(source, end))


# The server.


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with (
        opened(f"redis://me:topsecret@127.0.0.1:{port}/0") as collections,
        pytest.raises(CollectionsUnavailable) as caught,
    ):
        collections.map("m")[1] = 1
    said = str(caught.value)
    assert f"the map 'm' is in Redis at redis://127.0.0.1:{port}/0, which cannot be reached" in said
    assert "start the server" in said
    assert "topsecret" not in said + repr(caught.value.__cause__) + str(caught.value.__cause__)


@pytest.mark.parametrize("login", ["", ":wrong@", "nobody:wrong@"])
def test_a_wrong_password_is_named_and_not_shown(login: str) -> None:
    server = RedisServer(password="right")
    try:
        with (
            opened(f"redis://{login}127.0.0.1:{server.port}/0") as collections,
            pytest.raises(CollectionsUnavailable, match=r"the list 'l'.* refuses the user"),
        ):
            collections.list("l").append(1)
        with opened(server.url) as collections:
            collections.list("l").append(1)
            assert collections.list("l") == [1]
            assert "right" not in repr(collections.server)
    finally:
        server.stop()


def test_a_server_that_started_again_is_found_again() -> None:
    server = RedisServer()
    try:
        with opened(server.url) as collections:
            collections.list("l").append(1)
            server.stop()
            server.start()
            collections.list("l").append(2)
            assert collections.list("l") == [2]
    finally:
        server.stop()


def test_a_connection_that_was_closed_while_idle_is_replaced(
    stored: RedisCollections, redis: RedisServer
) -> None:
    stored.list("l").append(1)
    with redis.client() as client:
        client.client_kill_filter(_type="normal", skipme=True)
    stored.list("l").append(2)
    assert stored.list("l") == [1, 2]


def test_a_server_that_hangs_is_given_up(redis: RedisServer) -> None:
    with opened(f"{redis.url}?socket_timeout=0.2") as collections:
        collections.list("l").append(1)
        os.kill(redis.pid, signal.SIGSTOP)
        try:
            with pytest.raises(CollectionsUnavailable, match="Timeout reading"):
                len(collections.list("l"))
        finally:
            os.kill(redis.pid, signal.SIGCONT)
        assert collections.list("l") == [1]


def test_a_unix_socket_is_an_address(tmp_path: Path) -> None:
    server = RedisServer("--unixsocket", str(tmp_path / "s"))
    try:
        with opened(f"unix://{tmp_path}/s") as collections:
            collections.list("l").append(1)
            assert collections.list("l") == [1]
            assert collections.server.address == f"unix://{tmp_path}/s"
    finally:
        server.stop()


def test_a_write_whose_reply_is_lost_is_not_sent_again(redis: RedisServer) -> None:
    with cutting_replies(redis.port) as (port, cut), opened(f"redis://127.0.0.1:{port}/0") as cold:
        assert len(cold.list("l")) == 0
        cut.set()
        with pytest.raises(CollectionsUnavailable, match="may be there or not"):
            cold.list("l").append(1)
    with opened(redis.url) as collections:
        assert collections.list("l") == [1]


@contextmanager
def cutting_replies(port: int) -> Iterator[tuple[int, threading.Event]]:
    """A proxy that, once the event is set, ends the next connection that has a reply to pass on;
    then it is itself again."""
    cut = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            with client, socket.create_connection(("127.0.0.1", port)) as server:
                while asked := client.recv(1 << 16):
                    server.sendall(asked)
                    answer = server.recv(1 << 16)
                    if cut.is_set():
                        cut.clear()
                        break
                    client.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listening.getsockname()[1], cut
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


def test_something_else_under_the_name_is_refused(
    stored: RedisCollections, redis: RedisServer
) -> None:
    with redis.client() as client:
        client.set("pyrite:map:m", "a string")
    with pytest.raises(CollectionsUnavailable, match="something that Pyrite has not written"):
        len(stored.map("m"))
    stored.list("m").append(1)  # the connection is well


def test_names_have_the_prefix_of_the_documentation(
    stored: RedisCollections, redis: RedisServer
) -> None:
    stored.map("größe")["a"] = 1
    stored.list("l").append(1)
    with redis.client() as client:
        assert set(client.keys()) == {"pyrite:map:größe".encode(), b"pyrite:list:l"}


def test_a_value_that_cannot_be_pickled_is_named(stored: RedisCollections) -> None:
    with pytest.raises(CannotStore, match=r"lock.* cannot be pickled"):
        stored.list("l").append(threading.Lock())
    assert stored.list("l") == []


def test_a_long_extend_is_one_step(stored: RedisCollections) -> None:
    stored.list("l").extend(range(120_000))
    stored.map("m").update({n: n for n in range(60_000)})
    assert stored.list("l")[119_990:] == list(range(119_990, 120_000))
    assert len(stored.map("m")) == 60_000


def test_a_forked_child_has_connections_of_its_own(stored: RedisCollections) -> None:
    numbers = stored.list("l")
    numbers.append(1)

    def use() -> list[Any]:
        for n in range(50):
            numbers.append(n)
        return [numbers[0], len(numbers)]

    assert in_child(use)[0] == 1
    assert len(numbers) == 51


# Which places there are.


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("disk", "must be 'memory' or the URL of a Redis"),
        (None, "must be 'memory'"),
        ("http://host", "'redis://host:6379/0'"),
        ("redis://host/prod", "must be a number"),
        ("redis://host:port", "is not the URL of a Redis"),
        ("redis://host/0?socket_timeout=soon", "is not the URL of a Redis"),
    ],
)
def test_a_place_that_is_none_is_refused(place: Any, words: str) -> None:
    with pytest.raises(PyriteError, match=words):
        pyrite.instance(collections=place)
    with pytest.raises(PyriteError, match=words):
        pyrite.instance(members=2, collections=place)


def test_without_the_package_an_instance_says_what_to_install() -> None:
    said = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import sys; sys.modules['redis'] = None; import pyrite\n"
            "try: pyrite.instance(collections='redis://localhost')\n"
            "except pyrite.PyriteError as error: print(error)",
        ],
        capture_output=True,
        text=True,
    )
    assert "pip install 'pyrite[redis]'" in said.stdout


# Light jobs.


def test_a_light_job_reads_and_writes(pyr: Instance) -> None:
    pyr.list("in").extend(range(10_000))
    pyr.new_light_job(writing(p.read_list("in"), p.write_list("out"))).execute().result(20)
    assert pyr.list("out") == list(range(10_000))
    dag = writing(p.read_items([(n, -n) for n in range(10_000)]), p.write_map("m"))
    pyr.new_light_job(dag).execute().result(20)
    assert pyr.map("m") == {n: -n for n in range(10_000)}


class Counts(AbstractProcessor):
    """Counts items in a map: what it reads comes after what it wrote."""

    def init(self, context: ProcessorContext) -> None:
        self._counts = context.collections.map("counts")

    def try_process_any(self, ordinal: int, item: Any) -> None:
        self._counts[item] = self._counts.get(item, 0) + 1


def test_a_processor_finds_what_it_wrote(pyr: Instance) -> None:
    pyr.new_light_job(writing(p.read_items("abcab" * 20), Counts)).execute().result(20)
    assert pyr.map("counts") == {"a": 40, "b": 40, "c": 20}


def test_a_light_job_that_fails_leaves_what_it_wrote_before(pyr: Instance) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(30_000)))
    check = dag.vertex("check", p.filter(lambda n: 1 // (29_000 - n) >= 0))
    sink = dag.vertex("sink", p.write_list("l"))
    dag.edge(between(source, check)).edge(between(check, sink))
    with pytest.raises(JobFailed, match="ZeroDivisionError"):
        pyr.new_light_job(dag).execute().result(20)
    left = list(pyr.list("l"))
    assert left
    assert left == list(range(len(left)))


def test_a_write_that_the_server_refuses_fails_the_job(pyr: Instance, redis: RedisServer) -> None:
    with redis.client() as client:
        client.set("pyrite:list:l", "a string")
    for _ in range(2):
        with pytest.raises(JobFailed, match=r"the list 'l' is in Redis at redis://127\.0"):
            pyr.new_light_job(writing(p.read_items([1, 2]), p.write_list("l"))).execute().result(20)
    pyr.new_light_job(writing(p.read_items([1, 2]), p.write_list("other"))).execute().result(20)
    assert pyr.list("other") == [1, 2]


def test_a_server_that_dies_fails_the_job() -> None:
    server = RedisServer()
    try:
        with pyrite.instance(collections=server.url) as pyr:
            pyr.list("l").append(0)
            server.stop()
            with pytest.raises(JobFailed, match="the list 'l' is in Redis"):
                pyr.new_light_job(
                    writing(p.read_items([1, 2]), p.write_list("l"))
                ).execute().result(20)
    finally:
        server.stop()


# Members.


def test_light_jobs_on_members_use_it(redis: RedisServer) -> None:
    with pyrite.instance(members=2, collections=redis.url) as pyr:
        pyr.map("in").update({n: n for n in range(100)})
        pyr.new_light_job(writing(p.read_map("in"), p.write_map("out"))).execute().result(20)
        assert pyr.map("out") == {n: n for n in range(100)}
        assert pyr.collections()[0][:2] == ("map", "in")
    with opened(redis.url) as collections:  # it outlives the members
        assert len(collections.map("out")) == 100


def test_the_password_is_in_no_command_line_and_no_environment() -> None:
    server = RedisServer(password="topsecret")
    try:
        with pyrite.instance(members=1, collections=server.url) as pyr:
            pyr.new_light_job(writing(p.read_items([1]), p.write_list("l"))).execute().result(20)
            assert pyr.list("l") == [1]
            ((_, pid),) = pyr.processes()
            for file in ("cmdline", "environ"):
                assert b"topsecret" not in Path(f"/proc/{pid}/{file}").read_bytes()
    finally:
        server.stop()


def test_a_member_that_dies_takes_nothing_along(redis: RedisServer) -> None:
    with LocalCluster(members=2, collections=redis.url) as cluster, cluster.client() as client:
        client.map("m").update({n: n for n in range(20)})
        pids = cluster.pids
        os.kill(pids[1], signal.SIGKILL)
        wait_for_new_incarnation(cluster, pids, 1)
        assert client.map("m") == {n: n for n in range(20)}
