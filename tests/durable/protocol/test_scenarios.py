"""The ten scenarios of the specification: what coordinator and peers do when one of them dies. Each
runs again with the coordinator dying before each of its steps, with the same end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import JobStatus
from tests.durable.protocol.shapes import ONE, ONE_SEQUENTIAL
from tests.durable.protocol.world import World

Scenario = Callable[[World], None]
SCENARIOS: list[Scenario] = []


def scenario(run: Scenario) -> Scenario:
    SCENARIOS.append(run)
    return run


def go(world: World, peer: str, *acts: str) -> None:
    """The peer does these things; the coordinator handles each before the next."""
    for act in acts:
        world.coordinate()
        if act == "look":
            world.look(peer)
        else:
            assert world.act(peer), f"{peer} cannot {act}"
            assert world.peers[peer].mode == act
    world.coordinate()


TAKE = ("look", "working")
SEAL = ("asked", "sealed")
ALL = (*TAKE, *SEAL, "completed")


def begin(world: World, *peers: str, job: str = "job1") -> None:
    for peer in peers:
        world.born(peer)
        world.coordinate()
    world.submit(job, ONE)
    world.coordinate()


def states(world: World, peer: str) -> str:
    return " ".join(world.witness.history[peer])


def is_complete(world: World, job: str = "job1") -> bool:
    return world.status(job) is JobStatus.COMPLETE


@scenario
def one_peer_does_three_jobs(world: World) -> None:
    begin(world, "p1")
    go(world, "p1", *ALL)
    for job in ("job2", "job3"):
        world.submit(job, ONE_SEQUENTIAL)
        go(world, "p1", *ALL)
    assert states(world, "p1") == "idle" + " acking active sealing idle" * 3
    assert all(is_complete(world, job) for job in ("job1", "job2", "job3"))


@scenario
def one_peer_times_out_while_acking(world: World) -> None:
    begin(world, "p1")
    world.look("p1")
    for _ in range(2):  # a new leader gives the peer its time again
        world.time_out("p1")
        world.coordinate()
    assert paths.status("p1") not in world.nodes
    go(world, "p1", "working")  # too late: there is no node to set
    assert states(world, "p1") == "idle acking revoked"
    world.look("p1")
    world.born("p2")
    go(world, "p2", *ALL)
    assert states(world, "p1") == "idle acking revoked dead"
    assert is_complete(world)


@scenario
def one_peer_dies_while_acking(world: World) -> None:
    begin(world, "p1")
    world.kill("p1")
    world.coordinate()
    world.time_out("p1")
    world.born("p2")
    go(world, "p2", *ALL)
    assert states(world, "p1") == "idle acking dead"
    assert is_complete(world)


@scenario
def one_peer_dies_while_active(world: World) -> None:
    begin(world, "p1")
    go(world, "p1", *TAKE)
    world.kill("p1")
    world.born("p2")
    go(world, "p2", *ALL)
    assert states(world, "p1") == "idle acking active dead"
    assert is_complete(world)


@scenario
def one_peer_dies_while_sealing(world: World) -> None:
    begin(world, "p1")
    go(world, "p1", *TAKE, "asked")
    world.kill("p1")
    world.coordinate()
    assert not is_complete(world)
    world.born("p2")
    go(world, "p2", *ALL)
    assert states(world, "p1") == "idle acking active sealing dead"
    assert states(world, "p2") == "idle acking active sealing idle"
    assert is_complete(world)


@scenario
def one_peer_dies_after_its_completion(world: World) -> None:
    begin(world, "p1")
    go(world, "p1", *TAKE, *SEAL)
    world.act("p1")
    world.kill("p1")
    world.coordinate()
    assert states(world, "p1") == "idle acking active sealing idle dead"
    assert is_complete(world)


@scenario
def the_completion_of_a_dead_peer_counts_if_nobody_is_on_the_part(world: World) -> None:
    begin(world, "p1")
    go(world, "p1", *TAKE, *SEAL)
    world.expire("p1")
    world.coordinate()
    assert states(world, "p1") == "idle acking active sealing dead"
    go(world, "p1", "completed")
    assert is_complete(world)


@scenario
def the_completion_of_a_dead_peer_does_not_count_if_somebody_is_on_the_part(world: World) -> None:
    begin(world, "p1")
    go(world, "p1", *TAKE, *SEAL)
    world.expire("p1")
    world.born("p2")
    go(world, "p2", *TAKE)
    go(world, "p1", "completed")
    assert not is_complete(world)
    go(world, "p2", *SEAL, "completed")
    assert is_complete(world)


@scenario
def two_peers_and_one_waits(world: World) -> None:
    begin(world, "p1", "p2")
    go(world, "p1", *TAKE)
    go(world, "p2", *TAKE)
    go(world, "p1", "asked")
    go(world, "p2", *SEAL)
    assert not is_complete(world)
    go(world, "p2", "completed")
    assert states(world, "p1") == "idle acking active waiting idle"
    assert states(world, "p2") == "idle acking active sealing idle"
    assert is_complete(world)


@scenario
def one_peer_joins_while_another_seals(world: World) -> None:
    begin(world, "p1")
    go(world, "p1", *TAKE, *SEAL)
    world.born("p2")
    go(world, "p2", *TAKE)
    go(world, "p1", "completed")
    assert not is_complete(world)
    go(world, "p1", *TAKE, "asked")  # it is offered the part again, and waits for p2
    go(world, "p2", *SEAL, "completed")
    assert states(world, "p1") == "idle acking active sealing idle acking active waiting idle"
    assert states(world, "p2") == "idle acking active sealing idle"
    assert is_complete(world)


@scenario
def one_peer_joins_late_and_dies(world: World) -> None:
    begin(world, "p1")
    go(world, "p1", *TAKE, *SEAL)
    world.born("p2")
    go(world, "p2", *TAKE)
    world.kill("p2")
    go(world, "p1", "completed")
    assert states(world, "p1") == "idle acking active sealing idle"
    assert states(world, "p2") == "idle acking active dead"
    assert is_complete(world)


@scenario
def one_of_two_peers_dies_while_sealing(world: World) -> None:
    begin(world, "p1", "p2")
    go(world, "p1", *TAKE)
    go(world, "p2", *TAKE)
    go(world, "p1", "asked")
    go(world, "p2", "asked")
    world.kill("p2")
    go(world, "p1", *ALL)  # it was released and is offered the part again
    assert states(world, "p1") == "idle acking active waiting idle acking active sealing idle"
    assert states(world, "p2") == "idle acking active sealing dead"
    assert is_complete(world)


@pytest.mark.parametrize("run", SCENARIOS, ids=lambda run: run.__name__)
def test_scenario(run: Scenario) -> None:
    world = World()
    run(world)
    world.check_view()
    world.check_replay(most=1000)
    world.check_nothing_is_left()


@pytest.mark.parametrize("run", SCENARIOS, ids=lambda run: run.__name__)
def test_scenario_with_the_death_of_the_coordinator_at_every_step(run: Scenario) -> None:
    calm = World()
    run(calm)
    for crash_at in range(2, calm.steps + 1):
        world = World(crash_at=crash_at)
        run(world)
        assert world.store.epoch == 2
        world.check_replay(most=5)
        world.check_nothing_is_left()
