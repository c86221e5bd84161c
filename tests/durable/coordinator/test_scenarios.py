"""The ten scenarios with a leader on a real store. Each runs again with the leader killed before
each of its writes, and a stand-by taking over: with the same end. The soak tests kill it right
after each write, too, and on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrite.durable.coordinator.upkeep import WAITS_SECONDS
from tests.durable.coordinator.places import Places
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
def test_scenario(run: Scenario, places: Places) -> None:
    play(Stage(places.empty()), run)


@each_scenario
def test_scenario_with_the_death_of_the_coordinator_at_every_write(
    run: Scenario, places: Places
) -> None:
    if places.is_slow:
        play_with_death(Stage(places.empty(), before=1 + SCENARIOS.index(run) % 9), run)
    else:
        for at in range(1, play(Stage(places.empty()), run) + 1):
            play_with_death(Stage(places.empty(), before=at), run)


@pytest.mark.soak
@each_scenario
def test_scenario_with_all_deaths(run: Scenario, places: Places) -> None:
    for at in range(1, play(Stage(places.empty()), run) + 1):
        play_with_death(Stage(places.empty(), before=at), run)
        play_with_death(Stage(places.empty(), after=at), run)


def play_with_death(stage: Stage, run: Scenario) -> None:
    play(stage, run)
    assert stage.leaders == 2


def test_scenario_with_deaths_between_the_writes_of_an_entry(tmp_path: Path) -> None:
    places, run = Places(str(tmp_path), is_slow=False), SCENARIOS[-1]
    writes = play(Stage(places.empty(), most_writes=2), run)
    for at in range(2, writes + 1, 3):
        play(Stage(places.empty(), before=at, most_writes=2), run)
