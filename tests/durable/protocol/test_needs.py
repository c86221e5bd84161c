"""What a job says when it has too few peers."""

from __future__ import annotations

from pyrite.durable.protocol.coordinator.events import Cancel
from pyrite.durable.protocol.coordinator.needs import waits_for
from tests.durable.protocol.desk import Desk
from tests.durable.protocol.shapes import CHAIN


def test_a_job_without_any_peer_says_so() -> None:
    sentence = waits_for(Desk(job=CHAIN).cluster, "job")
    assert sentence is not None
    assert sentence.startswith("waits for peers: none is running, and 4 of 4 open parts need one")


def test_a_job_with_fewer_peers_than_parts_says_so() -> None:
    desk = Desk("p0", "p1", "p2", job=CHAIN)
    desk.offer()
    sentence = waits_for(desk.cluster, "job")
    assert sentence is not None
    assert sentence.startswith("needs more peers: 1 of 4 open parts wait for one of the 3 peers")


def test_a_job_whose_parts_all_have_a_peer_says_nothing() -> None:
    desk = Desk("p0", "p1", "p2", "p3", job=CHAIN)
    desk.offer()
    assert waits_for(desk.cluster, "job") is None


def test_a_job_that_is_ending_or_unknown_says_nothing() -> None:
    desk = Desk("p0", job=CHAIN)
    desk.offer()
    desk.handle(Cancel("job"))
    assert waits_for(desk.cluster, "job") is None
    assert waits_for(desk.cluster, "other") is None
