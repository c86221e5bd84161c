"""A peer tells what it has done about once a second, in small writes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrite.durable.client.figures import metrics_of
from pyrite.durable.peer import telling
from pyrite.durable.peer.peer import MOST_METRICS, metrics_text
from pyrite.durable.peer.telling import FULL, LONGEST, Telling
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.store.sqlite import SqliteStore
from pyrite.durable.store.store import SessionLost, StoreError
from pyrite.errors import JobCancelled
from pyrite.job import Execution
from tests.durable.parts.test_tally import items
from tests.durable.test_watching import GATE, closed_gate, dag_of, store  # noqa: F401
from tests.durable.threads import running

PART = Part("job", "task", 0)


class Noted(SqliteStore):
    """Notes the lengths of what is written, and raises what it is told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.written: list[int] = []
        self.error: StoreError | None = None

    def create_child(self, path: str, data: str = "") -> bool | None:
        self._note(data)
        return super().create_child(path, data)

    def set(self, path: str, data: str) -> bool:
        self._note(data)
        return super().set(path, data)

    def _note(self, data: str) -> None:
        if self.error is not None:
            raise self.error
        self.written.append(len(data))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def noted(tmp_path: Path) -> Iterator[Noted]:
    noted = Noted(tmp_path)
    noted.create(paths.live("job"))
    yield noted
    noted.close()


def test_it_tells_once_a_second_and_only_what_is_new(noted: Noted) -> None:
    clock = Clock()
    telling = Telling(noted, "peer-1", clock)
    tally = telling.begin(PART, 1)
    tally.commits(items(5))
    telling.tick()
    assert noted.written == []
    for count in (1, 2, 2):
        clock.now += 1
        telling.tick()
        telling.tick()
        tally.commits(items(5)) if count == 1 else None
        assert len(noted.written) == count
    assert metrics_of(noted, "job")["v"]["received"] == 10


def test_no_write_is_too_long_for_a_node(noted: Noted) -> None:
    clock = Clock()
    telling = Telling(noted, "peer-1", clock)
    for number in range(4000):
        telling.begin(Part("job", "task", number), number).commits(items(5))
    clock.now += 1
    telling.tick()
    assert max(noted.written) <= LONGEST
    assert metrics_of(noted, "job")["v"]["received"] == 20_000


def test_single_processors_are_left_out_if_there_are_too_many(noted: Noted) -> None:
    clock = Clock()
    telling = Telling(noted, "peer-1", clock)
    vertex = items(5)["v"]
    many = {f"v{n}": {**vertex, "processors": [*vertex["processors"] * 64]} for n in range(100)}
    telling.begin(PART, 1, by_processor=True).commits(many)
    clock.now += 1
    telling.tick()
    assert max(noted.written) <= LONGEST
    assert metrics_of(noted, "job")["v99"]["received"] == 5


def test_an_idle_peer_tells_what_is_left_and_then_nothing_more(noted: Noted) -> None:
    clock = Clock()
    telling = Telling(noted, "peer-1", clock)
    telling.begin(PART, 1).commits(items(5))
    clock.now += 2
    telling.tick(is_idle=True)
    telling.begin(Part("job", "task", 1), 2).commits(items(5))
    clock.now += 0.5
    telling.tick(is_idle=True)
    assert len(noted.written) == 1
    clock.now += 0.5
    telling.tick(is_idle=True)
    assert metrics_of(noted, "job")["v"]["received"] == 10


def test_a_job_that_completes_while_it_is_looked_at_has_its_exact_metrics(tmp_path: Path) -> None:
    """What was told is deleted after the exact metrics were written."""

    class Completing(Noted):
        def below(self, *roots: str) -> dict[str, str]:
            found = super().below(*roots)
            self.create(paths.metrics("job"), '{"v":{"received":9}}')
            self.delete(paths.live("job"))
            return {path: text for path, text in found.items() if not path.endswith("-0")}

    store = Completing(tmp_path)  # noqa: F811
    store.create(paths.live("job"))
    clock = Clock()
    telling = Telling(store, "peer-1", clock)
    telling.begin(PART, 1).commits(items(5))
    clock.now += 2
    telling.tick()
    assert metrics_of(store, "job")["v"]["received"] == 9
    store.close()


def test_of_a_job_that_has_ended_nothing_is_told(noted: Noted) -> None:
    clock = Clock()
    telling = Telling(noted, "peer-1", clock)
    telling.begin(PART, 1).commits(items(5))
    noted.delete(paths.live("job"))
    clock.now += 2
    telling.tick()
    assert noted.written == []
    assert noted.children("/live") == []


def test_each_write_is_small_however_many_parts_a_peer_does(noted: Noted) -> None:
    clock = Clock()
    telling = Telling(noted, "peer-1", clock)
    for member in range(300):
        telling.begin(Part("job", "task", member), member + 1).commits(items(1))
        clock.now += 0.3
        telling.tick()
    clock.now += 1
    telling.tick()
    assert max(noted.written) < FULL + 5_000
    assert len(noted.children(paths.live("job"))) > 1
    assert metrics_of(noted, "job")["v"]["received"] == 300


def test_a_slow_store_is_told_less_often(noted: Noted) -> None:
    clock = Clock()
    telling = Telling(noted, "peer-1", clock)
    tally = telling.begin(PART, 1)
    tally.look = lambda: (setattr(clock, "now", clock.now + 0.1), items(1))[1]
    for _ in range(40):
        clock.now += 0.5
        tally.commits(items(1))
        telling.tick()
    assert 3 <= len(noted.written) <= 6


def test_a_store_that_cannot_be_written_fails_nothing(noted: Noted) -> None:
    clock = Clock()
    telling = Telling(noted, "peer-1", clock)
    telling.begin(PART, 1).commits(items(5))
    noted.error = StoreError("the disk is full")
    clock.now += 2
    telling.tick()
    noted.error = None
    clock.now += 2
    telling.tick()
    assert metrics_of(noted, "job")["v"]["received"] == 5
    noted.error = SessionLost("it must begin anew")
    telling.begin(PART, 2).commits(items(5))
    clock.now += 2
    with pytest.raises(SessionLost):
        telling.tick()


def crawl(item: int) -> int:
    """Slow until the gate is open."""
    GATE.wait(0.0002)
    return item


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "PERIOD", 0.01)


def until_seen(execution: Execution) -> dict[str, Any]:
    give_up = time.monotonic() + 20
    while "work" not in (seen := execution.metrics()) or not seen["work"]["received"]:
        assert time.monotonic() < give_up
        time.sleep(0.005)
    return seen


@pytest.mark.usefixtures("closed_gate", "often")
def test_metrics_and_members_of_a_job_move_while_it_runs(
    tmp_path: Path,
    store: SqliteStore,  # noqa: F811
) -> None:
    with running(tmp_path, peers=2) as threads:
        execution = threads.execute(dag_of(crawl, items=3000), members=2)
        seen = until_seen(execution)
        members = execution.members()
        GATE.set()
        execution.result(20)
        final = execution.metrics()
    assert seen["read"]["emitted"] == 3000
    assert 0 < seen["work"]["received"] < final["work"]["received"] == 3000
    assert [len(seen[name]["processors"]) for name in ("read", "work")] == [1, 2]
    assert any(each["memory_bytes"] > 1 << 20 for each in members)
    assert store.children("/live") == []


@pytest.mark.usefixtures("closed_gate", "often")
def test_what_a_cancelled_job_has_done_stays_to_be_seen(tmp_path: Path) -> None:
    with running(tmp_path, peers=2) as threads:
        execution = threads.execute(dag_of(crawl, items=3000), members=2)
        seen = until_seen(execution)
        execution.cancel()
        GATE.set()
        assert isinstance(execution.exception(20), JobCancelled)
        assert execution.metrics()["work"]["received"] >= seen["work"]["received"]
        assert execution.members() == []


def test_exact_metrics_of_many_vertices_have_room_in_a_node() -> None:
    vertex = {**items(5)["v"], "heaviest_keys": [["'a -> b'", "k" * 100, 1, 0.5]] * 5}
    text = metrics_text({f"v{n}": vertex for n in range(1500)})
    assert len(text) < MOST_METRICS
    assert json.loads(text)["v1499"]["received"] == 5
