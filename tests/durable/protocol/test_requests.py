"""The seal rule, the complete rule, and requests that name an offer that is over."""

from __future__ import annotations

import pytest

from pyrite.durable.protocol.coordinator.events import (
    Ack,
    Born,
    Complete,
    Death,
    Event,
    Evict,
    Fail,
    Revoke,
    Seal,
)
from pyrite.durable.protocol.tree.writes import Put
from tests.durable.protocol.desk import Desk
from tests.durable.protocol.shapes import CHAIN, ONE

THREE = ("p0", "p1", "p2")


def busy(*peers: str) -> Desk:
    desk = Desk(*peers, job=ONE)
    desk.offer()
    desk.ack(*peers)
    return desk


def test_the_last_active_peer_seals_and_the_others_wait() -> None:
    desk = busy(*THREE)
    assert [desk.seal(peer) for peer in THREE] == ["waiting", "waiting", "sealing"]


def test_who_comes_while_another_seals_waits_for_it() -> None:
    desk = busy("p0")
    assert desk.seal("p0") == "sealing"
    desk.handle(Born("p1"))
    desk.offer()
    desk.ack("p1")
    assert desk.seal("p1") == "waiting"
    desk.handle(Complete("p0", desk.offer_of("p0")))
    assert "job" in desk.cluster.ended


def test_a_peer_waits_for_one_that_is_acking() -> None:
    desk = Desk("p0", "p1", job=ONE)
    desk.offer()
    desk.ack("p0")
    assert desk.seal("p0") == "waiting"


def test_the_answer_is_written_once_and_a_repeated_request_does_not_change_it() -> None:
    desk = busy("p0", "p1")
    first = desk.handle(Seal("p0", desk.offer_of("p0")))
    assert first.entry is not None
    assert Put(f"/exhaust/{desk.offer_of('p0')}", "waiting") in first.entry.writes
    desk.handle(Death("p1"))
    assert desk.handle(Seal("p0", 1)).entry is None


def test_who_waits_is_released_when_the_last_active_peer_dies() -> None:
    desk = busy("p0", "p1")
    desk.seal("p0")
    desk.handle(Death("p1"))
    assert desk.state("p0") == "idle"


def test_who_waits_is_released_when_the_last_acking_peer_is_revoked() -> None:
    desk = Desk("p0", "p1", job=ONE)
    desk.offer()
    desk.ack("p0")
    desk.seal("p0")
    desk.handle(Revoke("p1", desk.offer_of("p1")))
    assert [desk.state("p0"), desk.state("p1")] == ["idle", "revoked"]


def test_who_waits_stays_while_somebody_is_active() -> None:
    desk = busy(*THREE)
    desk.seal("p0")
    desk.handle(Death("p1"))
    assert desk.state("p0") == "waiting"


def test_a_part_is_complete_when_its_sealing_peer_is() -> None:
    desk = busy(*THREE)
    for peer in THREE:
        desk.seal(peer)
    desk.handle(Complete("p2", desk.offer_of("p2")))
    assert [desk.state(peer) for peer in THREE] == ["idle"] * 3
    assert "job" in desk.cluster.ended


def test_a_job_is_complete_when_all_its_parts_are_not_when_the_last_one_is() -> None:
    desk = Desk("p0", "p1", "p2", "p3", job=CHAIN)
    desk.offer()
    for peer in ("p3", "p2", "p1"):
        desk.complete(peer)
    assert "job" not in desk.cluster.ended
    desk.complete("p0")
    assert "job" in desk.cluster.ended


@pytest.mark.parametrize("kind", [Ack, Seal, Complete])
def test_a_request_that_names_another_offer_is_ignored(
    kind: type[Ack] | type[Seal] | type[Complete],
) -> None:
    desk = Desk("p0", job=ONE)
    desk.offer()
    for make_ready in (desk.ack, desk.seal, desk.complete):
        assert desk.handle(kind("p0", 99)).entry is None
        make_ready("p0")


@pytest.mark.parametrize("event", [Complete("p0", 1), Seal("p0", 1)])
def test_a_request_that_comes_too_early_is_ignored(event: Event) -> None:
    desk = Desk("p0", job=ONE)
    desk.offer()
    assert desk.handle(event).entry is None


def test_after_an_ack_the_later_requests_are_watched() -> None:
    desk = Desk("p0", job=ONE)
    desk.offer()
    watches = desk.handle(Ack("p0", 1)).watches
    assert [watch.path for watch in watches] == ["/seal/1", "/completion/1"]


def test_the_completion_of_a_peer_that_died_active_does_not_count() -> None:
    desk = busy("p0")
    desk.handle(Death("p0"))
    assert desk.handle(Complete("p0", 1)).entry is None


def test_a_revoke_after_the_ack_changes_nothing() -> None:
    desk = busy("p0")
    assert desk.handle(Revoke("p0", desk.offer_of("p0"))).entry is None


def test_the_timer_of_an_earlier_offer_does_not_revoke_a_later_one() -> None:
    desk = Desk("p0", job=ONE)
    desk.offer()
    desk.handle(Evict("p0", 1))
    desk.offer()
    assert desk.handle(Revoke("p0", 1)).entry is None
    desk.handle(Revoke("p0", 2))
    assert desk.state("p0") == "revoked"


def test_a_failure_that_a_peer_reports_after_its_offer_is_over_is_ignored() -> None:
    desk = busy("p0")
    assert desk.handle(Fail("p0", 99, "too late")).entry is None
    desk.handle(Death("p0"))
    assert desk.handle(Fail("p0", 1, "too late")).entry is None
