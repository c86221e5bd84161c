"""What a new leader does with what it finds in the store."""

from __future__ import annotations

import pytest

from pyrite.durable.protocol.coordinator.events import (
    Ack,
    Born,
    Cancel,
    Complete,
    Event,
    Fail,
    Plan,
    Reject,
    Seal,
    Shutdown,
)
from pyrite.durable.protocol.coordinator.takeover import take_over
from pyrite.durable.protocol.coordinator.watches import PulseWatch, planned
from pyrite.durable.protocol.states import ProtocolError
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import FAILED, NOW, TOUCHED, WANTED
from pyrite.durable.protocol.workflow import Part
from tests.durable.protocol.shapes import ONE
from tests.durable.protocol.world import World


def begun(*acts: str) -> World:
    """One peer has an offer and has done so much; then the leader dies."""
    world = World()
    world.submit("job", ONE)
    world.born("p0")
    for _ in acts:
        world.coordinate()
        world.look("p0")
        world.act("p0")
    world.coordinate()
    world.crash()
    return world


def events(world: World) -> list[Event]:
    return list(take_over(world.nodes).events)


def test_touched_requests_are_events_in_the_order_ack_seal_completion() -> None:
    world = begun("ack")
    for request in (paths.completion, paths.seal, paths.ack):
        world.nodes[request(1)] = TOUCHED
    assert events(world) == [Ack("p0", 1), Seal("p0", 1), Complete("p0", 1)]


def test_a_request_that_the_peer_has_not_set_is_no_event() -> None:
    world = begun()
    world.coordinate()
    assert paths.ack(1) in world.nodes
    assert events(world) == []


def test_a_failure_that_nobody_has_seen_is_an_event() -> None:
    world = begun("ack")
    world.nodes[paths.completion(1)] = FAILED + "no memory"
    assert events(world)[1:] == [Fail("p0", 1, "no memory")]


def test_the_completion_of_a_peer_that_died_sealing_is_an_event() -> None:
    world = begun("ack", "seal")
    world.expire("p0")
    world.coordinate()
    world.nodes[paths.completion(1)] = TOUCHED
    assert events(world) == [Complete("p0", 1)]


def test_plans_come_before_births_and_these_before_cancels_and_shutdowns() -> None:
    world = World()
    world.ask_to_shut_down("p0")
    world.cancel("job")
    world.born("p0")
    world.submit("job", ONE)
    expected: list[Event] = [Plan("job", ONE), Born("p0"), Shutdown("p0"), Cancel("job")]
    assert events(world) == expected


def test_what_has_been_handled_is_no_event() -> None:
    world = begun()
    world.coordinate()
    world.nodes[paths.shutdown("p0")] = NOW
    assert events(world) == []


def test_a_shutdown_that_nobody_has_seen_is_an_event() -> None:
    world = begun()
    world.coordinate()
    world.nodes[paths.shutdown("p0")] = WANTED
    assert events(world) == [Shutdown("p0")]


def test_timers_are_armed_for_those_that_are_acking() -> None:
    world = begun()
    world.coordinate()
    timers = take_over(world.nodes).timers
    assert [(timer.peer, timer.offer) for timer in timers] == [("p0", 1)]
    assert not take_over(begun("ack").nodes).timers


def test_pulses_of_all_who_live_are_watched() -> None:
    world = begun("ack")
    assert PulseWatch("p0") in take_over(world.nodes).watches
    world.kill("p0")
    world.coordinate()
    assert PulseWatch("p0") not in take_over(world.nodes).watches


def test_a_pulse_that_went_while_nobody_led_is_a_death() -> None:
    world = begun("ack")
    world.kill("p0")
    world.coordinate()
    assert world.witness.history["p0"][-1] == "dead"


def test_a_pulse_that_went_before_the_birth_was_handled_is_a_death() -> None:
    world = World()
    world.coordinate()
    world.born("p0")
    world.kill("p0")
    world.coordinate()
    assert world.witness.history["p0"] == ["idle", "dead"]


def test_the_numbers_of_offers_go_on() -> None:
    world = begun("ack")
    world.kill("p0")
    world.born("p1")
    world.coordinate()
    assert world.witness.standings["p1"].offer == 2


def test_a_workflow_that_cannot_be_read_fails_its_job_and_not_the_coordinator() -> None:
    for text in (None, "no json", "[[1]]", '[["a","concurrent",2,[["e",null,0]]]]', "5"):
        event = planned("job", text)
        assert isinstance(event, Reject)
        assert event.reason


def test_a_running_job_without_its_workflow_is_a_clear_error() -> None:
    world = begun("ack")
    del world.nodes[paths.workflow("job")]
    with pytest.raises(ProtocolError, match="job 'job' is running, but the store has no node"):
        take_over(world.nodes)


def test_a_part_that_was_sealed_in_vain_is_remembered() -> None:
    world = begun("ack", "seal")
    world.born("p1")
    for act in (world.look, world.act):
        world.coordinate()
        act("p1")
    for _ in range(2):
        world.coordinate()
        world.act("p0")
    world.coordinate()
    part = Part("job", "only", 0)
    assert take_over(world.nodes).cluster.jobs["job"].sealed_in_vain == {part}
