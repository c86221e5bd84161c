"""A leader does as much for an event with many peers and parts as with few. The cost is counted in
lines of Python that run, so that a loaded machine makes no difference. `benchmarks/durable.py`
measures the time."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.durable import Crowd, Size

from pyrite.durable.coordinator.leader import Leader
from pyrite.durable.store.sqlite import SqliteStore

STEPS = 30


def lines_of_some_steps(leader: Leader) -> int:
    """Without the first one, in which the leader hears of all that has happened."""
    assert leader.step()
    count = 0

    def trace(_frame: FrameType, kind: str, _arg: Any) -> Any:
        nonlocal count
        count += kind == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for _ in range(STEPS):
            assert leader.step()
    finally:
        sys.settrace(before)
    while leader.step():
        pass
    return count


def costs(folder: Path, size: Size) -> list[int]:
    """Of acks, of seals, and of completions."""
    store, office = SqliteStore(folder), SqliteStore(folder)
    crowd, leader = Crowd(store, size), Leader(office, lambda *_: None, clock=lambda: 0.0)
    leader.begin()
    while leader.step():
        pass
    found = []
    for _ in range(3):
        assert crowd.goes_on()
        found.append(lines_of_some_steps(leader))
    leader.stop()
    store.close()
    office.close()
    return found


def test_an_event_costs_the_same_with_many_peers_and_parts(tmp_path: Path) -> None:
    few, many = costs(tmp_path / "few", Size(40, 100)), costs(tmp_path / "many", Size(400, 1_000))
    assert [m / f < 1.5 for f, m in zip(few, many)] == [True] * 3, (few, many)
