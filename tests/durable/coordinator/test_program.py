"""Coordinators as programs: who leads, who takes over, and what happens when the store is gone."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from pyrite.durable.coordinator.program import Coordinator
from pyrite.durable.protocol.tree import paths
from pyrite.durable.store.opening import open_store
from pyrite.durable.store.store import Store, StoreError
from tests.durable.coordinator.places import Places
from tests.durable.coordinator.programs import Program, leader_and_standby
from tests.durable.coordinator.stage import Stage
from tests.durable.protocol.shapes import ONE
from tests.zookeeper import ZooKeeper

DONE = "idle acking active sealing idle"


def until(stage: Stage, states: str) -> None:
    """The peer works at least until it has been in these states."""
    while True:
        stage.store.watch_children(paths.peer_states("p1"))
        stage.look("p1")
        if stage.states("p1").startswith(states):
            return
        if not stage.act("p1"):
            assert stage.store.changed(10) is not None, stage.states("p1")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "ended"])
def test_a_stand_by_takes_over(places: Places, ending: signal.Signals) -> None:
    url = places.url()
    stage = Stage(partial(open_store, url))
    with leader_and_standby(url) as (leader, standby):
        stage.born("p1")
        stage.submit("job1", ONE)
        until(stage, "idle acking active")
        code = leader.end(ending)
        began = time.monotonic()
        assert code == (-ending if ending is signal.SIGKILL else 0)
        until(stage, DONE)
        waits = places.is_slow and ending is signal.SIGKILL
        taken = time.monotonic() - began
        assert taken < (3.0 if waits else 1.0), f"{taken:.2f} s"
        standby.says("leads, in epoch 2")
        standby.says("job 'job1' is complete")
    stage.close()


def test_a_place_that_cannot_be_one_is_an_error_at_once() -> None:
    program = Program("ftp://host/folder")
    program.says("is neither a folder nor the URL of a deployment")
    assert program.wait() == 1


def test_a_secret_does_not_stand_in_the_command_line() -> None:
    program = Program("zk://h/prod?secret=x")
    program.says("write the URL to a file and use --durable-file")
    assert program.wait() == 1


@contextmanager
def running(open_session: Callable[[], Store]) -> Iterator[None]:
    """A coordinator on a thread of this process."""
    coordinator = Coordinator(open_session, lambda *_: None, tuple)
    thread = threading.Thread(target=coordinator.run)
    thread.start()
    try:
        yield
    finally:
        coordinator.stop()
        thread.join(20)
        assert not thread.is_alive()


def play(stage: Stage) -> None:
    stage.born("p1")
    stage.submit("job1", ONE)
    until(stage, DONE)


def test_a_store_that_is_not_there_is_told_of_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[None] = []

    def open_session() -> Store:
        tries.append(None)
        if len(tries) < 3:
            raise StoreError("ZooKeeper at h:2181 cannot be reached; start it")
        return open_store(tmp_path)

    stage = Stage(lambda: open_store(tmp_path))
    with running(open_session):
        play(stage)
    assert len(tries) == 3
    told = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert told == [
        "tries again until it can: ZooKeeper at h:2181 cannot be reached; start it",
        "the store can be used again",
    ]
    stage.close()


def test_a_leader_whose_epoch_is_over_begins_anew(tmp_path: Path) -> None:
    stage = Stage(lambda: open_store(tmp_path))
    with running(lambda: open_store(tmp_path)):
        stage.store.watch(paths.EPOCH)
        stage.store.changed(10)
        stage.store.raise_epoch()
        play(stage)
    assert stage.store.get(paths.EPOCH) == "3"
    stage.close()


def test_a_leader_goes_on_after_its_zookeeper_was_killed_and_started_again(
    zookeeper: ZooKeeper,
) -> None:
    stage = Stage(Places(f"zk://{zookeeper.address}", is_slow=True).empty())
    with running(stage._open_store):
        stage.born("p1")
        stage.submit("job1", ONE)
        until(stage, "idle acking active")
        zookeeper.kill()
        zookeeper.start()
        until(stage, DONE)
    stage.close()
