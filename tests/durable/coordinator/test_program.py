"""Coordinators as processes: who leads, and who takes over."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrite.durable.protocol.tree import paths
from pyrite.durable.store.opening import open_store
from tests.durable.coordinator.programs import Program, leader_and_standby
from tests.durable.coordinator.stage import Stage
from tests.durable.protocol.shapes import ONE


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "folder")


@pytest.fixture
def stage(place: str) -> Iterator[Stage]:
    stage = Stage(lambda: open_store(place))
    yield stage
    stage.close()


def until(stage: Stage, states: str) -> None:
    """The peer works at least until it has been in these states."""
    while True:
        stage.store.watch_children(paths.peer_states("p1"))
        stage.look("p1")
        if stage.states("p1").startswith(states):
            return
        if not stage.act("p1"):
            assert stage.store.changed(10) is not None, stage.states("p1")


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_stand_by_takes_over(stage: Stage, place: str, ending: signal.Signals) -> None:
    with leader_and_standby(place) as (leader, standby):
        stage.born("p1")
        stage.submit("job1", ONE)
        until(stage, "idle acking active")
        code = leader.end(ending)
        began = time.monotonic()
        assert code == (-ending if ending is signal.SIGKILL else 0)
        until(stage, "idle acking active sealing idle")
        assert time.monotonic() - began < 1.0
        standby.says("leads, in epoch 2")
        standby.says("job 'job1' is complete")


def test_a_place_that_cannot_be_one_is_an_error_at_once() -> None:
    program = Program("ftp://host/folder")
    program.says("is neither a folder nor the URL of a deployment")
    assert program.wait() == 1
