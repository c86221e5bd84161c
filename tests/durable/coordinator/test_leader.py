"""What a leader does besides what the rules decide."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pyrite.durable.coordinator import upkeep
from pyrite.durable.coordinator.stumbles import MOST_TRIES
from pyrite.durable.protocol.coordinator import jobs, lives, requests
from pyrite.durable.protocol.states import ProtocolError
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import NOW, WANTED, JobNode, JobStatus
from pyrite.durable.store.store import EpochIsOver
from tests.durable.coordinator.places import Places
from tests.durable.coordinator.stage import ACK_SECONDS, Stage
from tests.durable.protocol.shapes import CHAIN, ONE, ONE_SEQUENTIAL


@pytest.fixture
def stage(places: Places) -> Iterator[Stage]:
    stage = Stage(places.empty())
    yield stage
    stage.close()


def log(stage: Stage) -> list[str]:
    """The kinds of the events in the log, in their order."""
    found = [p.split("/") for p in stage.store.below("/coordinator") if "/log-entry-" in p]
    return [kind.removesuffix("-log") for *_, kind, _ in sorted(found, key=lambda p: p[-1])]


# Events


def test_a_flood_of_jobs_does_not_delay_a_peer(stage: Stage) -> None:
    stage.coordinate()
    for number in range(20):
        stage.submit(f"job{number}", ONE)
    stage.born("p1")
    stage.coordinate()
    assert log(stage).index("born") <= 2


def test_idle_peers_get_offers_while_events_come(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyrite.durable.coordinator.leader.MOST_EVENTS", 10)
    stage.born("p1")
    stage.coordinate()
    for number in range(40):
        stage.submit(f"job{number}", ONE)
    stage.coordinate()
    assert log(stage).index("offer") < 15


def test_an_offer_that_is_not_taken_in_time_is_revoked(stage: Stage) -> None:
    stage.born("p1")
    stage.submit("job", ONE)
    stage.coordinate()
    stage.now = ACK_SECONDS - 0.1
    stage.coordinate()
    assert stage.states("p1") == "idle acking"
    stage.now = ACK_SECONDS
    stage.coordinate()
    assert stage.states("p1") == "idle acking revoked"


def test_a_cancel_before_the_plan_counts(stage: Stage) -> None:
    stage.store.create(paths.cancel("job"))
    stage.coordinate()
    stage.submit("job", ONE)
    stage.coordinate()
    assert stage.status("job") is JobStatus.CANCELLED
    assert stage.left() == set()


def test_a_second_cancel_of_an_ended_job_leaves_nothing(stage: Stage) -> None:
    stage.submit("job", ONE)
    stage.coordinate()
    for _ in range(2):
        stage.store.create(paths.cancel("job"))
        stage.coordinate()
    assert stage.status("job") is JobStatus.CANCELLED
    assert stage.left() == set()


def test_a_failure_ends_the_job_with_its_reason(stage: Stage) -> None:
    stage.born("p1")
    stage.submit("job", ONE)
    stage.coordinate()
    stage.look("p1")
    stage.act("p1")
    stage.coordinate()
    stage.fail("p1", "division by zero")
    stage.coordinate()
    node = JobNode.read(stage.store.get(paths.job("job")) or "")
    assert (node.status, node.reason) == (JobStatus.FAILED, "division by zero")


def test_a_peer_is_told_to_shut_down_once(stage: Stage) -> None:
    stage.born("p1")
    stage.coordinate()
    stage.store.create(paths.shutdown("p1"), WANTED)
    stage.coordinate()
    assert stage.store.get(paths.shutdown("p1")) == NOW
    stage.kill("p1")
    stage.coordinate()
    assert stage.left() == set()


def test_a_job_that_cannot_be_read_fails_and_others_go_on(stage: Stage) -> None:
    stage.store.create(paths.workflow("bad"), "no workflow")
    stage.store.create(paths.plan("bad"))
    stage.submit("good", ONE)
    stage.born("p1")
    stage.finish()
    assert stage.status("bad") is JobStatus.FAILED
    assert stage.status("good") is JobStatus.COMPLETE


def test_a_leader_whose_epoch_is_over_does_nothing_more(stage: Stage) -> None:
    stage.submit("job", ONE)
    stage.coordinate()
    old = stage.leader
    assert old is not None
    stage.elect()
    stage.born("p1")
    with pytest.raises(EpochIsOver):
        old.run()
    assert stage.states("p1") == ""
    old.stop()


# The queues of ended jobs


def test_queues_that_cannot_be_reached_do_not_stop_the_work(places: Places) -> None:
    gate = threading.Event()
    stage = Stage(places.empty(), close_queues=lambda *_: gate.wait(10))
    stage.born("p1")
    stage.submit("job1", ONE)
    stage.submit("job2", ONE_SEQUENTIAL)
    leader = stage.elect()
    while {stage.status("job1"), stage.status("job2")} != {JobStatus.COMPLETE}:
        stage.hear_all(leader)
        while leader.step():
            pass
        stage.look("p1")
        stage.act("p1")
    assert stage.store.children(paths.TO_CLOSE) == ["job1", "job2"]
    gate.set()
    stage.coordinate()
    assert stage.store.children(paths.TO_CLOSE) == []
    stage.close()


def test_queues_are_closed_again_until_it_works(places: Places) -> None:
    tries: list[str] = []

    def close(job: str, is_complete: bool) -> None:
        tries.append(job)
        if len(tries) < 3:
            raise ConnectionError("no servers")

    stage = Stage(places.empty(), close_queues=close)
    stage.submit("job", ONE)
    stage.store.create(paths.cancel("job"))
    stage.coordinate()
    assert tries == ["job"] * 3
    assert stage.left() == set()
    stage.close()


def test_whether_the_job_is_complete_is_known_when_its_queues_are_closed(places: Places) -> None:
    complete: dict[str, bool] = {}
    stage = Stage(places.empty(), close_queues=complete.__setitem__)
    stage.submit("cancelled", ONE)
    stage.store.create(paths.cancel("cancelled"))
    stage.submit("good", ONE)
    stage.born("p1")
    stage.finish()
    stage.coordinate()
    assert complete == {"cancelled": False, "good": True}
    stage.close()


def test_a_new_leader_closes_the_queues_that_the_old_one_could_not(places: Places) -> None:
    stage = Stage(places.empty(), close_queues=lambda *_: 1 / 0)
    stage.submit("job", ONE)
    stage.store.create(paths.cancel("job"))
    leader = stage.elect()
    while leader.step():
        pass
    stage.crash()
    closed: list[str] = []
    stage._close_queues = lambda job, _: closed.append(job)
    stage.coordinate()
    assert closed == ["job"]
    assert stage.left() == set()
    stage.close()


# Upkeep


def test_the_log_stays_short(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "BATCH", 5)
    monkeypatch.setattr(upkeep, "KEPT_ENTRIES", 5)
    for number in range(20):
        stage.born(f"p{number}")
        stage.coordinate()
        assert len(log(stage)) < 10
    stage.crash()
    stage.born("late")
    stage.coordinate()
    assert len(log(stage)) < 10


def test_only_the_last_ended_jobs_are_kept(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "BATCH", 2)
    monkeypatch.setattr(upkeep, "KEPT_JOBS", 3)
    for number in range(10):
        stage.store.create(paths.plan(f"job{number}"))
        stage.store.create(paths.shape(f"job{number}"))
        stage.store.create(paths.live_of(f"job{number}", "peer", 0))
        stage.coordinate()
    for root in ("/job", "/shape", "/live"):
        assert stage.store.children(root) == ["job6", "job7", "job8", "job9"]


def test_a_job_says_that_it_waits_for_peers_and_no_more_when_it_does_not(stage: Stage) -> None:
    stage.submit("job", ONE)
    stage.coordinate()
    assert stage.store.get(paths.waits("job")) is None
    stage.now += upkeep.WAITS_SECONDS
    stage.coordinate()
    assert "none is running" in (stage.store.get(paths.waits("job")) or "")
    stage.born("p1")
    stage.coordinate()
    stage.now += upkeep.WAITS_SECONDS
    stage.coordinate()
    assert stage.store.get(paths.waits("job")) is None


def test_what_an_old_leader_said_of_a_job_that_has_ended_goes(stage: Stage) -> None:
    stage.store.create(paths.waits("gone"), "waits")
    stage.coordinate()
    stage.now += upkeep.WAITS_SECONDS
    stage.coordinate()
    assert stage.left() == set()


# Bugs


def test_an_event_that_breaks_a_rule_ends_the_leader(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.born("p1")
    with monkeypatch.context() as broken:
        broken.setattr(lives, "born", _breaks)
        with pytest.raises(ProtocolError):
            stage.coordinate()
    stage.crash()
    stage.coordinate()
    assert stage.states("p1") == "idle"
    assert stage.left() == set()


def test_a_peer_whose_request_cannot_be_handled_is_fenced_off_and_the_job_goes_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.born("p1")
    stage.submit("job", ONE)
    stage.coordinate()
    stage.look("p1")
    stage.act("p1")
    with monkeypatch.context() as broken:
        broken.setattr(requests, "ack", _breaks)
        for _ in range(MOST_TRIES):
            with pytest.raises(ProtocolError):
                stage.coordinate()
            stage.crash()
        stage.coordinate()
    assert stage.states("p1") == "idle acking dead"
    stage.born("p2")
    stage.finish()
    assert stage.status("job") is JobStatus.COMPLETE
    assert stage.left() == set()


def test_a_job_that_cannot_be_planned_is_rejected_and_others_go_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.submit("job", CHAIN)
    with monkeypatch.context() as broken:
        broken.setattr(jobs, "plan", _breaks)
        for _ in range(MOST_TRIES):
            with pytest.raises(ProtocolError):
                stage.coordinate()
            stage.crash()
        stage.coordinate()
    node = JobNode.read(stage.store.get(paths.job("job")) or "")
    assert "the coordinator cannot plan the job: ProtocolError('oh')" in node.reason
    assert stage.left() == set()


def test_an_event_that_never_can_be_handled_is_left_out_and_others_go_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.store.create(paths.plan("bad"))
    with monkeypatch.context() as broken:
        broken.setattr(jobs, "plan", _breaks)
        broken.setattr(jobs, "reject", _breaks)
        for _ in range(2 * MOST_TRIES):
            stage.store.create(paths.workflow("bad"), ONE.text())
            with pytest.raises(ProtocolError):
                stage.coordinate()
            stage.crash()
        stage.born("p1")
        stage.coordinate()
    assert stage.states("p1") == "idle"


def _breaks(*_: object) -> None:
    raise ProtocolError("oh")
