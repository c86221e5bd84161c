"""Which peer gets which part, and who is evicted."""

from __future__ import annotations

from pyrite.durable.protocol.coordinator.events import (
    Born,
    Cancel,
    Complete,
    Death,
    Evict,
    Offer,
    Plan,
    Shutdown,
)
from pyrite.durable.protocol.coordinator.offers import MOST_OFFERS, wish
from pyrite.durable.protocol.workflow import Workflow
from tests.durable.protocol.desk import Desk
from tests.durable.protocol.shapes import CHAIN, DIAMOND, ONE, ONE_SEQUENTIAL, task
from tests.durable.protocol.world import World

TWO_CONCURRENT = Workflow((task("a", "concurrent", 1), task("b", "concurrent", 1, "a")))
SLOWLY_FED = Workflow(
    (
        task("in", "sequential", 1),
        task("a", "concurrent", 1, "in"),
        task("b", "concurrent", 1, "a"),
    )
)
SEQUENTIAL_DIAMOND = Workflow((task("in", "sequential", 1), *DIAMOND.tasks[1:]))


def peers(count: int) -> list[str]:
    return [f"p{number}" for number in range(count)]


def test_tasks_without_a_peer_come_first_and_among_them_the_lowest_phase() -> None:
    desk = Desk(*peers(6), job=SEQUENTIAL_DIAMOND)
    desk.offer()
    tasks = [desk.task(peer) for peer in peers(6)]
    assert tasks == ["in0", "left0", "right0", "right1", "merge0", "out0"]


def test_then_come_the_concurrent_tasks_with_fewest_peers() -> None:
    desk = Desk(*peers(6), job=SLOWLY_FED)
    desk.offer()
    assert [desk.task(peer) for peer in peers(6)] == ["in0", "a0", "b0", "a0", "b0", "a0"]
    desk.handle(Death("p1"))
    desk.handle(Death("p3"))
    desk.handle(Born("p6"))
    desk.offer()
    assert desk.task("p6") == "a0"


def test_peers_help_a_concurrent_part_whose_input_is_all_there_before_they_go_on() -> None:
    desk = Desk(*peers(3), job=TWO_CONCURRENT)
    desk.offer()
    assert [desk.task(peer) for peer in peers(3)] == ["a0", "a0", "a0"]


def test_when_the_input_of_the_next_part_is_all_there_they_help_that_one() -> None:
    desk = Desk("p0", "p1", job=SLOWLY_FED)
    desk.offer()
    desk.complete("p0")
    desk.offer()
    assert [desk.task("p0"), desk.task("p1")] == ["a0", "a0"]


def test_a_sequential_part_gets_one_peer_only() -> None:
    desk = Desk("p0", "p1", job=ONE_SEQUENTIAL)
    desk.offer()
    assert [desk.state("p0"), desk.state("p1")] == ["acking", "idle"]


def test_a_part_whose_peer_died_is_offered_again() -> None:
    desk = Desk("p0", "p1", job=ONE_SEQUENTIAL)
    desk.offer()
    desk.handle(Death("p0"))
    desk.offer()
    assert desk.task("p1") == "only0"


def test_jobs_take_turns_from_the_one_after_the_last_served() -> None:
    desk = Desk(*peers(4), a=CHAIN, b=CHAIN, c=CHAIN)
    desk.offer()
    assert [desk.job(peer) for peer in peers(4)] == ["a", "b", "c", "a"]
    desk.handle(Born("p4"))
    desk.offer()
    assert desk.job("p4") == "b"


def test_the_turn_goes_on_when_the_last_served_job_has_ended() -> None:
    desk = Desk("p0", "p1", a=CHAIN, b=ONE, c=CHAIN)
    desk.offer()
    desk.complete("p1")
    desk.offer()
    assert "b" in desk.cluster.ended
    assert desk.job("p1") == "c"


def test_who_is_idle_longest_is_served_first() -> None:
    desk = Desk("p9", "p1", job=ONE_SEQUENTIAL)
    desk.offer()
    assert [desk.state("p9"), desk.state("p1")] == ["acking", "idle"]


def test_all_idle_peers_are_placed_in_one_pass_of_as_many_entries_as_it_takes() -> None:
    many = peers(2 * MOST_OFFERS + 1)
    desk = Desk(*many, job=ONE)
    passes = 0
    while wish(desk.cluster) == Offer():
        desk.offer()
        passes += 1
    assert passes == 3
    assert {desk.state(peer) for peer in many} == {"acking"}


def test_the_numbers_of_offers_go_up() -> None:
    desk = Desk(*peers(3), job=ONE)
    desk.offer()
    assert [desk.offer_of(peer) for peer in peers(3)] == [1, 2, 3]


def starved() -> Desk:
    """One peer is downstream, and the only peer upstream has died."""
    desk = Desk("p0", "p1", job=SLOWLY_FED)
    desk.offer()
    desk.ack("p1")
    desk.handle(Death("p0"))
    return desk


def test_a_peer_is_evicted_if_a_lower_phase_has_none_and_nobody_is_idle() -> None:
    desk = starved()
    evict = wish(desk.cluster)
    assert evict == Evict("p1", desk.offer_of("p1"))
    desk.handle(evict)
    desk.offer()
    assert desk.task("p1") == "in0"


def test_nobody_is_evicted_if_somebody_is_idle() -> None:
    desk = starved()
    desk.handle(Born("p2"))
    assert wish(desk.cluster) == Offer()


def test_nobody_is_evicted_from_a_lower_phase() -> None:
    desk = Desk("p0", job=TWO_CONCURRENT)
    desk.offer()
    assert wish(desk.cluster) is None


def test_the_evicted_peer_is_one_of_the_highest_phase() -> None:
    desk = Desk(*peers(6), job=SEQUENTIAL_DIAMOND)
    desk.offer()
    desk.handle(Death("p0"))
    assert wish(desk.cluster) == Evict("p5", desk.offer_of("p5"))


def test_a_sealing_peer_is_not_evicted() -> None:
    desk = starved()
    assert desk.seal("p1") == "sealing"
    assert wish(desk.cluster) is None
    desk.handle(Evict("p1", desk.offer_of("p1")))
    assert desk.state("p1") == "sealing"


def test_an_evict_that_names_an_earlier_offer_is_ignored() -> None:
    desk = Desk("p0", job=ONE)
    desk.offer()
    desk.handle(Evict("p0", 0))
    assert desk.state("p0") == "acking"


def test_peers_of_a_cancelled_job_are_evicted_though_others_are_idle() -> None:
    desk = Desk("p0", "p1", job=ONE_SEQUENTIAL)
    desk.offer()
    desk.handle(Cancel("job"))
    assert wish(desk.cluster) == Evict("p0", desk.offer_of("p0"))


def test_a_peer_that_is_shutting_down_gets_no_offer() -> None:
    desk = Desk("p0", job=ONE)
    desk.offer()
    desk.handle(Shutdown("p0"))
    assert desk.state("p0") == "idle"
    assert wish(desk.cluster) is None
    desk.handle(Born("p1"))
    desk.offer()
    assert [desk.task("p0"), desk.task("p1")] == ["idle", "only0"]


def test_a_sealing_peer_that_is_shutting_down_completes_first_and_gets_no_offer_then() -> None:
    desk = Desk("p0", a=ONE, b=ONE)
    desk.offer()
    desk.ack("p0")
    desk.seal("p0")
    desk.handle(Shutdown("p0"))
    assert desk.state("p0") == "sealing"
    desk.handle(Complete("p0", desk.offer_of("p0")))
    assert desk.state("p0") == "idle"
    assert wish(desk.cluster) is None


def test_a_part_that_was_sealed_in_vain_takes_no_peer_while_it_is_sealed_again() -> None:
    desk = Desk("p0", job=ONE)
    desk.offer()
    desk.ack("p0")
    desk.seal("p0")
    desk.handle(Born("p1"))
    desk.offer()
    desk.ack("p1")
    desk.handle(Complete("p0", desk.offer_of("p0")))
    assert desk.seal("p1") == "sealing"
    assert wish(desk.cluster) is None
    desk.handle(Death("p1"))
    assert wish(desk.cluster) == Offer()


def test_peers_do_not_change_places_for_ever_between_two_parts_that_are_sealed() -> None:
    world = World()
    for job, workflow in (("a", ONE_SEQUENTIAL), ("b", DIAMOND), ("c", DIAMOND)):
        world.submit(job, workflow)
    for peer in peers(6):
        world.born(peer)
    world.finish()
    assert len(world.log) < 200


def test_a_job_that_is_planned_later_gets_its_turn() -> None:
    desk = Desk("p0", "p1", a=ONE_SEQUENTIAL)
    desk.offer()
    desk.handle(Plan("b", ONE_SEQUENTIAL))
    assert wish(desk.cluster) == Offer()
    desk.offer()
    assert desk.job("p1") == "b"
