"""The ten scenarios on a cluster in memory. Each runs again with the coordinator dying before each
of its steps, with the same end."""

from __future__ import annotations

import pytest

from tests.durable.protocol.world import World
from tests.durable.scenarios import SCENARIOS, Scenario


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
