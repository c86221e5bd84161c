"""The courier: what it is given arrives in order and in the background, and nobody waits for a
receiver that does not take it."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator

import pytest

from pyrite.telemetry import courier as couriers
from pyrite.telemetry.courier import Courier


class Receiver:
    def __init__(self) -> None:
        self.got: list[int] = []
        self.may_take = threading.Event()
        self.may_take.set()
        self.is_dead = False

    def __call__(self, things: list[int]) -> None:
        assert self.may_take.wait(10)
        if self.is_dead:
            raise OSError("dead")
        self.got += things


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.may_take.set()


def made(receiver: Receiver) -> Courier[int]:
    return Courier("pyrite-test", "the receiver", lambda: receiver)


def test_all_arrives_in_order(receiver: Receiver) -> None:
    courier = made(receiver)
    for number in range(1000):
        courier.post(number)
    courier.close()
    assert receiver.got == list(range(1000))


def test_posting_does_not_wait(receiver: Receiver) -> None:
    receiver.may_take.clear()
    courier = made(receiver)
    courier.post(1)
    courier.post(2)
    receiver.may_take.set()
    assert courier.flush()
    assert receiver.got == [1, 2]
    courier.close()


def test_the_thread_ends_when_there_is_nothing_to_send(receiver: Receiver) -> None:
    courier = made(receiver)
    courier.post(1)
    assert courier.flush()
    join()
    courier.post(2)
    courier.close()
    assert receiver.got == [1, 2]


def test_a_dead_receiver_is_one_warning_until_it_lives_again(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    courier = made(receiver)
    for is_dead in (True, True, False, True):
        receiver.is_dead = is_dead
        courier.post(1)
        assert courier.flush() is not is_dead
    courier.close()
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


@pytest.mark.parametrize("took_before", [0, 1])
def test_a_receiver_that_does_not_answer_is_not_waited_for_long(
    took_before: int, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    courier = made(receiver)
    for number in range(took_before):
        courier.post(number)
        assert courier.flush()
    receiver.may_take.clear()
    courier.post(1)
    started = time.monotonic()
    courier.close()
    assert 0.3 < time.monotonic() - started < 0.8
    assert not courier.flush()  # which the end of the process calls
    assert time.monotonic() - started < 0.8
    assert "the receiver does not answer" in caplog.text
    receiver.may_take.set()
    join()


def join() -> None:
    for thread in threading.enumerate():
        if thread.name == "pyrite-test":
            thread.join(10)
            assert not thread.is_alive()


def test_what_cannot_be_settled_does_not_keep_the_rest_from_being_sent(receiver: Receiver) -> None:
    courier = Courier[int]("pyrite-test", "the receiver", lambda: receiver, settle=lambda: 1 // 0)
    courier.post(1)
    courier.close()
    assert receiver.got == [1]


def test_a_slow_receiver_gets_all_as_long_as_it_takes_one_after_the_other() -> None:
    got: list[int] = []
    done = threading.Event()

    def take(things: list[int]) -> None:
        done.wait(0.06)
        got.extend(things)

    courier = Courier("pyrite-test", "the receiver", lambda: take, at_once=1)
    for number in range(10):
        courier.post(number)
    courier.close()
    assert got == list(range(10))


def test_nothing_is_imported_for_a_receiver_that_does_not_listen(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    def reach() -> None:
        raise ConnectionError("nobody answers")

    prepared: list[bool] = []
    courier = Courier[int](
        "pyrite-test", "the receiver", lambda: prepared.append(True) or receiver, reach=reach
    )
    courier.post(1)
    courier.close()
    assert not prepared
    assert "nobody answers" in caplog.text


def test_the_oldest_is_dropped_if_too_much_waits(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(couriers, "MOST_WAITING", 2)
    receiver.may_take.clear()
    courier = made(receiver)
    courier.post(0)
    while courier._waiting:
        pass
    for number in (1, 2, 3, 4):
        courier.post(number)
    receiver.may_take.set()
    courier.close()
    assert receiver.got == [0, 3, 4]
    assert len(caplog.records) == 1


def test_a_forked_child_sends_its_own_things_only(receiver: Receiver) -> None:
    receiver.may_take.clear()
    courier = made(receiver)
    courier.post(1)
    child = os.fork()
    if not child:
        receiver.may_take = threading.Event()
        receiver.may_take.set()
        courier.post(2)
        courier.close()
        os._exit(0 if receiver.got == [2] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    receiver.may_take.set()
    courier.close()
    assert receiver.got == [1]
