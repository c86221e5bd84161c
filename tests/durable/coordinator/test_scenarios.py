"""The ten scenarios with a leader on a real store. Each runs again with the leader killed before
and after each of its writes, and a stand-by taking over: with the same end."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrite.durable.coordinator.upkeep import WAITS_SECONDS
from tests.durable.coordinator.places import Places
from tests.durable.coordinator.stage import Stage
from tests.durable.scenarios import SCENARIOS, Scenario
from tests.zookeeper import ZooKeeper

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
    if places.is_slow:  # all of them: see the next test
        at = 1 + SCENARIOS.index(run) % 9
        play_with_death(run, Stage(places.empty(), before=at))
    else:
        play_with_all_deaths(places, run)


@pytest.mark.soak
@each_scenario
def test_scenario_with_all_deaths_on_zookeeper(run: Scenario, zookeeper: ZooKeeper) -> None:
    play_with_all_deaths(Places(f"zk://{zookeeper.address}", is_slow=True), run)


def play_with_all_deaths(places: Places, run: Scenario) -> None:
    for at in range(1, play(Stage(places.empty()), run) + 1):
        play_with_death(run, Stage(places.empty(), before=at))
        play_with_death(run, Stage(places.empty(), after=at))


def play_with_death(run: Scenario, stage: Stage) -> None:
    play(stage, run)
    assert stage.leaders == 2


def test_scenario_with_deaths_between_the_writes_of_an_entry(tmp_path: Path) -> None:
    places, run = Places(str(tmp_path), is_slow=False), SCENARIOS[-1]
    writes = play(Stage(places.empty(), most_writes=2), run)
    for at in range(2, writes + 1, 3):
        play(Stage(places.empty(), before=at, most_writes=2), run)
