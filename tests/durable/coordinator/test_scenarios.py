"""The ten scenarios with a leader on a real store. Each runs again with the leader killed before
and after each of its writes, and a stand-by taking over: with the same end."""

from __future__ import annotations

import pytest

from pyrite.durable.coordinator.upkeep import WAITS_SECONDS
from tests.durable.coordinator.conftest import Opener
from tests.durable.coordinator.stage import Stage
from tests.durable.scenarios import SCENARIOS, Scenario

each_scenario = pytest.mark.parametrize("run", SCENARIOS, ids=lambda run: run.__name__)


def play(stage: Stage, run: Scenario) -> int:
    """Plays a scenario to its end. How many writes the leader has done."""
    try:
        run(stage)
        for _ in range(2):  # a new leader waits again
            stage.now += WAITS_SECONDS
            stage.coordinate()
        assert stage.left() == set()
        assert set(stage.closed) == set(stage.workflows)
        return stage.write_count
    finally:
        stage.close()


@each_scenario
def test_scenario(run: Scenario, opener: Opener) -> None:
    play(Stage(opener()), run)


@each_scenario
def test_scenario_with_the_death_of_the_coordinator_at_every_write(
    run: Scenario, opener: Opener
) -> None:
    writes = play(Stage(opener()), run)
    for at in range(1, writes + 1):
        for stage in (Stage(opener(), before=at), Stage(opener(), after=at)):
            play(stage, run)
            assert stage.leaders == 2


def test_scenario_with_deaths_between_the_parts_of_an_entry(opener: Opener) -> None:
    run = SCENARIOS[-1]
    writes = play(Stage(opener(), most_writes=2), run)
    for at in range(2, writes + 1, 2):
        play(Stage(opener(), before=at, most_writes=2), run)
