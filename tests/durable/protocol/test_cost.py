"""An event costs the same with 1,000 peers and 10,000 parts as with a few. The cost is counted in
lines of Python that run, so that a loaded machine makes no difference."""

from __future__ import annotations

import sys
from statistics import median
from types import FrameType
from typing import Any

from pyrite.durable.protocol.coordinator.events import (
    Ack,
    Born,
    Complete,
    Death,
    Event,
    Evict,
    Fail,
    Offer,
    Revoke,
    Seal,
)
from pyrite.durable.protocol.coordinator.log import Entry
from pyrite.durable.protocol.coordinator.offers import wish
from pyrite.durable.protocol.coordinator.watches import MOST_REASON, RequestWatch
from pyrite.durable.protocol.tree.nodes import FAILED
from pyrite.durable.protocol.workflow import Workflow
from tests.durable.protocol.desk import Desk
from tests.durable.protocol.shapes import task

MEGABYTE = 1_000_000  # what a node of ZooKeeper can hold


def name(number: int) -> str:
    return f"{number:036}"  # as long as a UUID


def full(peers: int, workflow: Workflow) -> Desk:
    desk = Desk(*map(name, range(peers)), job=workflow)
    while wish(desk.cluster) == Offer():
        desk.offer()
    return desk


def lines(desk: Desk, event: Event) -> int:
    """The lines that a decision and the next wish take."""
    count = 0

    def trace(_frame: FrameType, kind: str, _arg: Any) -> Any:
        nonlocal count
        count += kind == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        desk.handle(event)
        wish(desk.cluster)
    finally:
        sys.settrace(before)
    return count


def costs(peers: int, workflow: Workflow) -> dict[str, float]:
    """The median for each kind of event."""
    desk = full(peers, workflow)
    found: dict[str, list[int]] = {}

    def cost(event: Event) -> None:
        found.setdefault(type(event).__name__, []).append(lines(desk, event))

    for peer in map(name, range(5)):
        cost(Ack(peer, desk.offer_of(peer)))
        cost(Seal(peer, desk.offer_of(peer)))
        cost(Complete(peer, desk.offer_of(peer)))
        cost(Offer())
        cost(Evict(peer, desk.offer_of(peer)))
        cost(Offer())
        cost(Revoke(peer, desk.offer_of(peer)))
        cost(Death(peer))
        cost(Born(f"new{peer}"))
        cost(Offer())
    return {kind: median(counts) for kind, counts in found.items()}


def compare(few: dict[str, float], many: dict[str, float]) -> None:
    assert {k: (few[k], many[k]) for k in few if many[k] > 1.5 * few[k] + 20} == {}


def test_an_event_costs_the_same_with_many_peers_and_many_parts() -> None:
    def workflow(parts: int) -> Workflow:
        return Workflow((task("in", "sequential", parts), task("out", "sequential", 1, "in")))

    compare(costs(10, workflow(30)), costs(1000, workflow(10_000)))


def test_an_event_costs_the_same_with_many_peers_on_one_task() -> None:
    workflow = Workflow((task("in", "concurrent", 1), task("out", "concurrent", 1, "in")))
    compare(costs(20, workflow), costs(1000, workflow))


def largest(entries: list[Entry | None]) -> int:
    return max(len(entry.text()) for entry in entries if entry is not None)


def test_an_entry_with_the_longest_reason_of_a_failure_fits_into_a_node() -> None:
    desk = full(1, Workflow((task("only", "concurrent", 1),)))
    fail = RequestWatch("completion", name(0), 1).event(FAILED + "é" * MEGABYTE)
    assert isinstance(fail, Fail)
    assert len(fail.reason) == MOST_REASON
    assert largest([desk.handle(fail).entry]) < MEGABYTE


def test_an_entry_that_offers_to_1000_peers_fits_into_a_node() -> None:
    desk = Desk(*map(name, range(1000)), **{name(0): Workflow((task("t" * 200, "concurrent", 1),))})
    entries = []
    while wish(desk.cluster) == Offer():
        entries.append(desk.handle(Offer()).entry)
    assert largest(entries) < MEGABYTE


def test_an_entry_that_releases_1000_peers_fits_into_a_node() -> None:
    desk = full(1000, Workflow((task("only", "concurrent", 1),)))
    peers = list(map(name, range(1000)))
    desk.ack(*peers)
    for peer in peers:
        desk.seal(peer)
    entry = desk.handle(Complete(peers[-1], desk.offer_of(peers[-1]))).entry
    assert {desk.state(peer) for peer in peers} == {"idle"}
    assert largest([entry]) < MEGABYTE
