"""The executions that a member knows: every race is a test, and all orders of events are tried."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pyrite.cluster.light.registry import (
    NEVER_INITIALIZED_SECONDS,
    REMEMBERED_SECONDS,
    Executions,
)

ID, OTHER = b"execution", b"another"


def executions() -> Executions[list[str]]:
    return Executions(lambda id: [])


def test_data_before_init_is_held_and_adopted() -> None:
    known = executions()
    held = known.data(ID, 0)
    assert held is not None
    held.append("packet")
    assert known.init(ID, "a", 1) == ["packet"]
    assert known.data(ID, 2) is held


def test_an_execution_that_was_never_initialized_is_dropped_after_five_minutes() -> None:
    known = executions()
    known.data(ID, 0)
    assert known.tick(299.9) == []
    assert known.tick(300) == [ID]
    assert known.find(ID) is None
    known.tick(600)
    assert known.is_idle


def test_an_init_after_its_data_was_dropped_does_not_run_without_it() -> None:
    known = executions()
    known.data(ID, 0)
    known.tick(300)
    known.tick(400)
    assert known.init(ID, "a", 400) is None
    known.cancel(ID, 500)
    assert known.init(ID, "a", 599) is None


def test_an_execution_that_runs_is_not_dropped_however_long_it_takes() -> None:
    known = executions()
    known.init(ID, "a", 0)
    assert known.tick(10_000) == []
    assert known.find(ID) is not None


def test_a_cancel_that_overtakes_its_init_lets_it_not_run() -> None:
    known = executions()
    assert known.cancel(ID, 0) is None
    assert known.init(ID, "a", 4.9) is None


def test_a_cancel_drops_what_was_held_for_the_init() -> None:
    known = executions()
    known.data(ID, 0)
    known.cancel(ID, 1)
    assert known.find(ID) is None
    assert known.data(ID, 2) is None


def test_an_init_later_than_five_seconds_after_its_cancel_runs_and_the_checker_ends_it() -> None:
    known = executions()
    known.cancel(ID, 0)
    known.tick(5)
    context = known.init(ID, "a", 5.1)
    assert context is not None
    assert known.to_check() == {"a": [ID]}
    assert known.unknown("a", [ID]) == [context]


def test_late_data_of_an_execution_that_failed_makes_no_new_context() -> None:
    known = executions()
    known.init(ID, "a", 0)
    known.ended(ID, 1, well=False)
    assert known.data(ID, 5.9) is None
    assert known.data(ID, 6) is not None


def test_an_execution_that_ended_well_leaves_nothing() -> None:
    known = executions()
    known.init(ID, "a", 0)
    known.ended(ID, 1, well=True)
    assert known.is_idle


def test_a_second_init_is_refused() -> None:
    known = executions()
    known.init(ID, "a", 0)
    assert known.init(ID, "a", 0) is None


def test_only_the_coordinator_of_an_execution_can_say_that_it_is_unknown() -> None:
    known = executions()
    known.init(ID, "a", 0)
    assert known.unknown("b", [ID, OTHER]) == []


def test_a_coordinator_that_is_gone_knows_none() -> None:
    known = executions()
    of_a = known.init(ID, "a", 0)
    known.init(OTHER, "b", 0)
    assert known.coordinator_gone("a") == [of_a]


def test_with_no_execution_there_is_nobody_to_ask() -> None:
    known = executions()
    known.data(ID, 0)
    assert known.to_check() == {}


def test_what_runs_can_be_listed_while_another_thread_begins_an_execution() -> None:
    known: Any = executions()

    class Raced:
        context = "raced"

        @property
        def coordinator(self) -> str:
            known.init(OTHER, "a", 0)  # as by another thread
            return "a"

    known._known[ID] = Raced()
    assert known.running() == ["raced"]


class AllOrders(RuleBasedStateMachine):
    """Compares with the obvious: a list of all that ever happened, searched each time."""

    ids = st.sampled_from([b"1", b"2", b"3"])

    @initialize()
    def start(self) -> None:
        self.now = 0.0
        self.known: Executions[set[str]] = Executions(lambda id: set())
        self.state: dict[bytes, tuple[str, float]] = {}
        """What it is, and since when; if it is bad, until when."""

    def state_of(self, id: bytes) -> str:
        state, at = self.state.get(id, ("absent", 0.0))
        return "absent" if state == "bad" and at <= self.now else state

    def now_bad(self, id: bytes, seconds: float) -> None:
        state, until = self.state.get(id, ("absent", 0.0))
        longest = until if state == "bad" else 0.0
        self.state[id] = ("bad", max(longest, self.now + seconds))

    @rule(seconds=st.sampled_from([0.5, 2.0, 5.0, 150.0, 300.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        gone = {
            id
            for id, (state, since) in self.state.items()
            if state == "waits" and since + NEVER_INITIALIZED_SECONDS <= self.now
        }
        assert set(self.known.tick(self.now)) == gone
        for id in gone:
            self.now_bad(id, NEVER_INITIALIZED_SECONDS)

    @rule(id=ids)
    def data(self, id: bytes) -> None:
        context = self.known.data(id, self.now)
        assert (context is None) == (self.state_of(id) == "bad")
        if self.state_of(id) == "absent":
            self.state[id] = ("waits", self.now)

    @rule(id=ids)
    def init(self, id: bytes) -> None:
        context = self.known.init(id, "coordinator", self.now)
        assert (context is None) == (self.state_of(id) in ("bad", "runs"))
        if context is not None:
            self.state[id] = ("runs", self.now)

    @rule(id=ids)
    def cancel(self, id: bytes) -> None:
        context = self.known.cancel(id, self.now)
        assert (context is not None) == (self.state_of(id) == "runs")
        if context is None:
            self.now_bad(id, REMEMBERED_SECONDS)

    @rule(id=ids, well=st.booleans())
    def end(self, id: bytes, well: bool) -> None:
        if self.state_of(id) == "runs":
            self.known.ended(id, self.now, well=well)
            del self.state[id]
            if not well:
                self.now_bad(id, REMEMBERED_SECONDS)

    @invariant()
    def only_what_runs_is_checked(self) -> None:
        runs = {id for id in self.state if self.state_of(id) == "runs"}
        assert set(self.known.to_check().get("coordinator", ())) == runs
        assert len(self.known.running()) == len(runs)


TestAllOrders = AllOrders.TestCase
TestAllOrders.settings = settings(max_examples=60, stateful_step_count=30)


def test_data_of_an_execution_that_is_lost_before_its_init_is_kept_for_five_seconds() -> None:
    executions: Executions[list[str]] = Executions(lambda id: [])
    executions.data(b"lost", 0.0)
    executions.is_lost(b"lost", 100.0)
    assert executions.tick(104.9) == []
    assert executions.tick(105.0) == [b"lost"]
    assert len(executions) == 0
    assert executions.init(b"lost", "c", 106.0) is None
