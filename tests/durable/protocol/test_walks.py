"""Long random walks over the same steps as the generated interleavings. They reach further, because
faults are rare; a failure names its seed."""

from __future__ import annotations

from random import Random

import pytest

from tests.durable.protocol.shapes import SHAPES
from tests.durable.protocol.test_interleavings import Interleavings

BLOCK = 100
ORDINARY = ("look", "act", "act", "coordinate", "coordinate", "submit", "born")
FAULTS = ("die", "expire", "time out", "again", "again", "crash", "crash", "pause", "wake")
RARE = ("cancel", "shut down", "fail", "collect")


@pytest.mark.parametrize("block", range(4))
def test_random_walks(block: int) -> None:
    walk_all(block)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(4, 40))
def test_more_random_walks(block: int) -> None:
    walk_all(block)


def walk_all(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        try:
            walk(seed)
        except Exception as error:
            raise AssertionError(f"the walk with seed {seed} failed") from error


def walk(seed: int) -> None:
    luck = Random(seed)
    machine = Interleavings()
    machine.start(luck.choice(sorted(SHAPES)), luck.randint(1, 4), luck.choice([None, seed]))
    fault_rate, rare_rate = luck.choice([0.02, 0.06, 0.2]), luck.choice([0, 0, 0.02])
    for _ in range(luck.choice([30, 100, 200])):
        dice = luck.random()
        if dice < rare_rate:
            step(machine, luck, luck.choice(RARE))
        elif dice < rare_rate + fault_rate:
            step(machine, luck, luck.choice(FAULTS))
        else:
            step(machine, luck, luck.choice(ORDINARY))
    machine.teardown()


def step(machine: Interleavings, luck: Random, kind: str) -> None:
    which = luck.randrange(6)
    match kind:
        case "look":
            machine.a_peer_looks(which)
        case "act":
            machine.a_peer_acts(which)
        case "coordinate":
            machine.the_coordinator_does_some_steps(luck.choice([1, 5, 20, 100]))
        case "submit" if luck.random() < 0.05:
            machine.a_client_submits(luck.choice(sorted(SHAPES)))
        case "born" if luck.random() < 0.1:
            machine.a_peer_is_born()
        case "die":
            machine.a_peer_dies(which)
        case "expire":
            machine.a_peer_loses_its_pulse_and_goes_on(which)
        case "time out":
            machine.a_peer_acks_too_late(which)
        case "again" if machine.world.handled:
            machine.a_message_comes_again(luck.randrange(40))
        case "crash":
            machine.the_coordinator_dies(luck.randrange(15))
        case "pause":
            machine.the_coordinator_is_paused(luck.randrange(15))
        case "wake" if machine.world.old_leaders and machine.world.leader:
            machine.a_paused_coordinator_wakes()
        case "cancel":
            machine.a_client_cancels(which)
        case "shut down":
            machine.a_client_shuts_a_peer_down(which)
        case "fail":
            machine.a_peer_fails_its_job(which)
        case "collect":
            machine.garbage_is_collected()
