"""Tests that every implementation of a message queue must pass. The test class of an implementation
derives from QueueContract and defines `make`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrite.workload.storage.queues import CrashStrategy, LostMessage, Queue

Make = Callable[..., Queue]


def consume_and_die(make: Make, place: Path, name: str) -> None:
    make(place, name).consume(timeout=10)
    os.kill(os.getpid(), signal.SIGKILL)


def consume_and_ack(make: Make, place: Path, name: str, count: int, out: str) -> None:
    with closing(make(place, name)) as queue:
        for _ in range(count):
            message = queue.consume(timeout=20)
            with open(out, "ab", buffering=0) as file:
                file.write(message.body + b"\n")
            queue.ack(message)


class QueueContract:
    make: Make
    """A function that makes a queue for this process from a folder, a name and a `crash=` strategy.
    It must be possible to pickle it."""

    @pytest.fixture(autouse=True)
    def queues_are_closed(self) -> Iterator[None]:
        with ExitStack() as self._opened:
            yield

    def queue(self, place: Path, name: str = "q", crash: CrashStrategy = "requeue") -> Queue:
        """A queue that is closed at the end of the test."""
        return self._opened.enter_context(closing(type(self).make(place, name, crash=crash)))

    def dies_with_a_message(self, place: Path) -> None:
        """A consumer in another process takes a message and is killed."""
        process = get_context("spawn").Process(
            target=consume_and_die, args=(type(self).make, place, "q")
        )
        process.start()
        process.join(30)
        assert process.exitcode == -signal.SIGKILL

    def test_first_in_first_out(self, tmp_path: Path) -> None:
        queue = self.queue(tmp_path)
        for n in range(5):
            queue.put(str(n).encode())
        assert len(queue) == 5
        assert [queue.consume().body for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
        assert queue.try_consume() is None
        assert len(queue) == 0

    def test_queues_with_different_names_are_independent(self, tmp_path: Path) -> None:
        one, other = self.queue(tmp_path, "one"), self.queue(tmp_path, "other")
        one.put(b"x")
        assert other.try_consume() is None
        assert one.consume().body == b"x"

    def test_a_message_is_given_to_one_consumer_and_an_acknowledged_one_to_none(
        self, tmp_path: Path
    ) -> None:
        queue, other = self.queue(tmp_path), self.queue(tmp_path)
        queue.put(b"x")
        message = queue.consume()
        assert other.try_consume() is None
        queue.ack(message)
        assert self.queue(tmp_path).try_consume() is None
        assert queue.list_failed() == []

    def test_a_message_is_acknowledged_once(self, tmp_path: Path) -> None:
        queue = self.queue(tmp_path)
        queue.put(b"x")
        message = queue.consume()
        queue.ack(message)
        with pytest.raises(LostMessage):
            queue.ack(message)
        with pytest.raises(LostMessage):
            queue.nack(message)

    def test_a_failed_message_is_listed_and_can_be_queued_again(self, tmp_path: Path) -> None:
        queue = self.queue(tmp_path)
        queue.put(b"x")
        queue.nack(queue.consume())
        assert queue.try_consume() is None
        assert [message.body for message in queue.list_failed()] == [b"x"]
        assert queue.requeue_failed() == 1
        assert queue.list_failed() == []
        assert queue.consume().tries == 1

    def test_waiting_for_a_message_times_out(self, tmp_path: Path) -> None:
        with pytest.raises(TimeoutError):
            self.queue(tmp_path).consume(timeout=0.02)

    def test_messages_outlive_the_queue_object_that_put_them(self, tmp_path: Path) -> None:
        self.queue(tmp_path).put(b"x")
        assert self.queue(tmp_path).consume().body == b"x"

    def test_a_consumer_that_was_killed_is_noticed_and_its_message_queued_again(
        self, tmp_path: Path
    ) -> None:
        queue = self.queue(tmp_path)
        queue.put(b"x")
        queue.put(b"y")
        self.dies_with_a_message(tmp_path)
        message = queue.consume()
        assert (message.body, message.tries) == (b"x", 2)
        assert (queue.consume().body, queue.try_consume()) == (b"y", None)

    def test_the_message_of_a_killed_consumer_fails_if_the_strategy_says_so(
        self, tmp_path: Path
    ) -> None:
        queue = self.queue(tmp_path, crash="fail")
        queue.put(b"x")
        self.dies_with_a_message(tmp_path)
        assert queue.try_consume() is None
        assert [message.body for message in queue.list_failed()] == [b"x"]

    def test_a_message_that_kills_its_consumers_is_queued_again_the_given_number_of_times(
        self, tmp_path: Path
    ) -> None:
        queue = self.queue(tmp_path, crash=1)
        queue.put(b"x")
        self.dies_with_a_message(tmp_path)
        assert len(queue) == 1
        self.dies_with_a_message(tmp_path)
        assert len(queue) == 0
        assert len(queue.list_failed()) == 1

    def test_the_message_of_a_living_consumer_stays_with_it(self, tmp_path: Path) -> None:
        queue = self.queue(tmp_path, crash="fail")
        queue.put(b"x")
        message = queue.consume()
        assert self.queue(tmp_path, crash="fail").list_failed() == []
        queue.ack(message)

    def test_several_processes_share_the_messages(self, tmp_path: Path) -> None:
        queue, count, out = self.queue(tmp_path), 50, str(tmp_path / "out")
        context: Any = get_context("spawn")
        consumers = [
            context.Process(
                target=consume_and_ack, args=(type(self).make, tmp_path, "q", count, out)
            )
            for _ in range(2)
        ]
        for consumer in consumers:
            consumer.start()
        for n in range(2 * count):
            queue.put(str(n).encode())
        for consumer in consumers:
            consumer.join(60)
            assert consumer.exitcode == 0
        assert sorted(map(int, Path(out).read_text().split())) == list(range(2 * count))
        assert queue.try_consume() is None

    @settings(
        max_examples=25,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.differing_executors,
        ],
    )
    @given(
        actions=st.lists(st.sampled_from(["put", "consume", "ack", "nack", "requeue"]), max_size=40)
    )
    def test_no_message_is_lost_or_doubled(
        self, tmp_path_factory: pytest.TempPathFactory, actions: list[str]
    ) -> None:
        with closing(type(self).make(tmp_path_factory.mktemp("queue"), "q")) as queue:
            put, ready, working, failed, done = 0, [], [], [], set()
            for action in actions:
                if action == "put":
                    queue.put(str(put).encode())
                    ready.append(put)
                    put += 1
                elif action == "consume":
                    message = queue.try_consume()
                    assert (message is None) == (not ready)
                    if message is not None:
                        assert int(message.body) == min(ready)
                        ready.remove(int(message.body))
                        working.append(message)
                elif action == "ack" and working:
                    message = working.pop()
                    queue.ack(message)
                    done.add(int(message.body))
                elif action == "nack" and working:
                    message = working.pop()
                    queue.nack(message)
                    failed.append(int(message.body))
                elif action == "requeue":
                    assert queue.requeue_failed() == len(failed)
                    ready.extend(failed)
                    failed.clear()
                assert len(queue) == len(ready)
                assert sorted(int(message.body) for message in queue.list_failed()) == sorted(
                    failed
                )
            assert len(done) + len(working) + len(ready) + len(failed) == put
