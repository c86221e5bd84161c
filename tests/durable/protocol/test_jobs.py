"""Jobs are planned, cancelled, fail and end; peers stop."""

from __future__ import annotations

import pytest

from pyrite.durable.protocol.coordinator.events import Cancel, Event, Fail, Plan, Reject, Seal
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import JobNode, JobStatus
from pyrite.durable.protocol.tree.writes import CloseQueues, Delete
from pyrite.durable.protocol.workflow import COMPLETION, Workflow
from tests.durable.protocol.desk import Desk
from tests.durable.protocol.shapes import CHAIN, ONE, TWO_SINKS, task
from tests.durable.protocol.world import World


def test_a_plan_that_comes_again_makes_no_second_job() -> None:
    desk = Desk("p0", job=CHAIN)
    desk.offer()
    again = desk.handle(Plan("job", CHAIN))
    assert again.entry is not None
    assert again.entry.writes == (Delete("/plan/job"),)
    assert desk.cluster.jobs["job"].peer_count == 1


def test_a_request_for_a_job_that_has_ended_is_deleted() -> None:
    desk = Desk("p0", job=ONE)
    desk.offer()
    desk.complete("p0")
    for event, path in ((Plan("job", ONE), "/plan/job"), (Cancel("job"), "/cancel/job")):
        entry = desk.handle(event).entry
        assert entry is not None
        assert Delete(path) in entry.writes
        assert all(isinstance(write, Delete) for write in entry.writes)


def test_an_ended_job_leaves_only_its_status_and_its_place_in_the_catalog() -> None:
    world = World()
    world.submit("job", TWO_SINKS)
    world.born("p0")
    world.finish()
    left = {path for path in world.nodes if "job" in path and "-log" not in path}
    assert left == {paths.job("job"), paths.catalog("job")}
    assert any(CloseQueues("job") in entry.writes for entry in world.log)


def test_leaders_of_sentinels_go_with_their_job() -> None:
    world = World()
    world.submit("job", ONE)
    world.born("p0")
    world.coordinate()
    world.nodes["/task/job/only-0/splits-only:-0"] = "a leader"
    world.finish()
    assert not [path for path in world.nodes if path.startswith("/task")]


def test_a_cancelled_job_ends_when_its_peers_have_left_the_sealing_one_included() -> None:
    world = World()
    world.submit("job", ONE)
    world.born("p0")
    for _ in range(3):
        world.coordinate()
        world.look("p0")
        world.act("p0")
    world.coordinate()
    world.cancel("job")
    world.coordinate()
    assert world.status("job") is JobStatus.CANCELLING
    world.finish()
    assert world.status("job") is JobStatus.CANCELLED
    assert world.witness.history["p0"][-2:] == ["sealing", "idle"]


def test_what_was_told_of_a_job_goes_with_its_completion_but_stays_if_it_is_cancelled() -> None:
    world = World()
    for job in ("good", "bad"):
        world.submit(job, ONE)
    world.born("p0")
    world.coordinate()
    for job in ("good", "bad"):
        world.nodes[f"{paths.live(job)}/p0-1"] = "so far"
    world.cancel("bad")
    world.finish()
    left = [path for path in world.nodes if path.startswith("/live")]
    assert left == [paths.live("bad"), f"{paths.live('bad')}/p0-1"]


def test_a_job_can_be_cancelled_before_it_is_planned() -> None:
    world = World()
    world.coordinate()
    world.cancel("job")
    world.coordinate()
    world.submit("job", ONE)
    world.coordinate()
    assert world.status("job") is JobStatus.CANCELLED


def test_a_job_fails_with_the_reason_that_its_peer_gives() -> None:
    world = World()
    world.submit("job", ONE)
    world.born("p0")
    world.coordinate()
    world.look("p0")
    world.act("p0")
    world.coordinate()
    world.fail("p0", "vertex 'map': division by zero")
    world.finish()
    node = JobNode.read(world.nodes[paths.job("job")])
    assert (node.status, node.reason) == (JobStatus.FAILED, "vertex 'map': division by zero")


def test_a_job_that_is_failing_cannot_be_cancelled() -> None:
    desk = Desk("p0", job=ONE)
    desk.offer()
    desk.ack("p0")
    desk.handle(Fail("p0", 1, "no memory"))
    desk.handle(Cancel("job"))
    assert desk.cluster.jobs["job"].node == JobNode(1, JobStatus.FAILING, "no memory")


@pytest.mark.parametrize(("comes_first", "state"), [("cancel", "active"), ("seal", "sealing")])
def test_results_of_a_job_become_visible_only_if_its_completion_seals_before_it_is_cancelled(
    comes_first: str, state: str
) -> None:
    desk = Desk("p0", job=Workflow((task(COMPLETION, "sequential", 1),)))
    desk.offer()
    desk.ack("p0")
    events: list[Event] = [Cancel("job"), Seal("p0", desk.offer_of("p0"))]
    for event in events if comes_first == "cancel" else events[::-1]:
        desk.handle(event)
    assert (desk.state("p0"), desk.cluster.jobs["job"].is_running) == (state, state == "sealing")


def test_a_job_that_cannot_be_read_has_failed() -> None:
    desk = Desk()
    desk.handle(Reject("job", "the workflow of job 'job' cannot be read"))
    assert desk.cluster.ended["job"].status is JobStatus.FAILED
    assert "job" not in desk.cluster.jobs


def test_a_peer_that_is_told_to_shut_down_stops_and_another_goes_on() -> None:
    world = World()
    world.submit("job", ONE)
    world.born("p0")
    world.coordinate()
    world.ask_to_shut_down("p0")
    world.coordinate()
    world.look("p0")
    assert not world.peers["p0"].is_running
    world.finish()
    assert world.status("job") is JobStatus.COMPLETE
    assert world.witness.history["p0"] == ["idle", "acking", "idle", "dead"]


def test_a_sealing_peer_that_fails_leaves_its_part_so_that_the_job_ends() -> None:
    desk = Desk("p0", job=ONE)
    desk.offer()
    desk.ack("p0")
    assert desk.seal("p0") == "sealing"
    desk.handle(Fail("p0", 1, "no memory"))
    assert desk.state("p0") == "idle"
    assert desk.cluster.ended["job"] == JobNode(1, JobStatus.FAILED, "no memory")
