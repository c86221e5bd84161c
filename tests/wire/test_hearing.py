"""Telling an ear something, one way."""

from __future__ import annotations

import os
import queue
import socket
import threading
from collections.abc import Iterator

import pytest

from pyrite.wire.hearing import Ear
from pyrite.wire.keys import keys_from, new_secret
from pyrite.wire.telling import MOST_UNSENT, Teller

KEYS = keys_from(new_secret(), "tests")


@pytest.fixture
def heard() -> queue.Queue[bytes]:
    return queue.Queue()


@pytest.fixture
def ear(heard: queue.Queue[bytes]) -> Iterator[Ear]:
    ear = Ear(KEYS, "127.0.0.1", heard.put)
    yield ear
    ear.close()


def test_what_is_told_is_heard_in_order(ear: Ear, heard: queue.Queue[bytes]) -> None:
    teller = Teller(f"127.0.0.1:{ear.port}", *KEYS)
    assert teller.tell(b"one")
    assert teller.tell(b"two")
    assert (heard.get(timeout=5), heard.get(timeout=5)) == (b"one", b"two")
    teller.close()


def test_a_long_message_is_heard(ear: Ear, heard: queue.Queue[bytes]) -> None:
    teller = Teller(f"127.0.0.1:{ear.port}", *KEYS)
    for message in (b"x" * 3_000_000, b"short"):
        teller.tell(message)
        assert heard.get(timeout=5) == message
    teller.close()


@pytest.mark.parametrize("name", ["pyrite-ear", ""])
def test_an_ear_for_which_there_is_no_thread_leaves_nothing_open(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith(name):
            raise RuntimeError("can't start new thread")
        start(thread)

    Ear(KEYS, "127.0.0.1", print).close()
    files = os.listdir("/proc/self/fd")
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        Ear(KEYS, "127.0.0.1", print)
    assert len(os.listdir("/proc/self/fd")) == len(files)


def test_what_has_arrived_is_heard_before_the_end(heard: queue.Queue[bytes]) -> None:
    ear = Ear(KEYS, "127.0.0.1", heard.put)
    teller = Teller(f"127.0.0.1:{ear.port}", *KEYS)
    teller.tell(b"one")
    heard.get(timeout=5)
    ear.close()
    ear.close()
    teller.tell(b"nobody is there")
    teller.close()
    assert heard.empty()


def test_a_stranger_is_not_heard(ear: Ear, heard: queue.Queue[bytes]) -> None:
    stranger = Teller(f"127.0.0.1:{ear.port}", *keys_from(new_secret(), "tests"))
    half = Teller(f"127.0.0.1:{ear.port}", KEYS.public, keys_from(new_secret(), "tests").secret)
    friend = Teller(f"127.0.0.1:{ear.port}", *KEYS)
    stranger.tell(b"let me in")
    with socket.create_connection(("127.0.0.1", ear.port)) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        friend.tell(b"hello")
        assert heard.get(timeout=5) == b"hello"
    assert heard.empty()
    for teller in (stranger, half, friend):
        teller.close()


def test_nobody_waits_for_an_address_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        teller = Teller(f"127.0.0.1:{deaf.getsockname()[1]}", *KEYS)
        sent = [teller.tell(b"anyone?") for _ in range(3 * MOST_UNSENT)]
        teller.close()
    assert sent[0]
    assert not sent[-1]


def test_an_error_of_the_listener_does_not_deafen_the_ear(heard: queue.Queue[bytes]) -> None:
    def listen(message: bytes) -> None:
        heard.put(message)
        raise RuntimeError("cannot read this")

    ear = Ear(KEYS, "127.0.0.1", listen)
    teller = Teller(f"127.0.0.1:{ear.port}", *KEYS)
    teller.tell(b"one")
    teller.tell(b"two")
    assert (heard.get(timeout=5), heard.get(timeout=5)) == (b"one", b"two")
    teller.close()
    ear.close()


def test_a_forked_child_does_not_keep_the_port(heard: queue.Queue[bytes]) -> None:
    ear = Ear(KEYS, "127.0.0.1", heard.put)
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.close(writes)
        os.read(reads, 1)
        os._exit(0)
    os.close(reads)
    teller = Teller(f"127.0.0.1:{ear.port}", *KEYS)
    teller.tell(b"to the parent")
    assert heard.get(timeout=5) == b"to the parent"
    ear.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", ear.port), timeout=5).close()
    os.close(writes)
    os.waitpid(child, 0)
    teller.close()
