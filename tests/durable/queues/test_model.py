"""Random use of queues by two peers, one of which may be a zombie, compared with a model."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pyrite.durable.protocol.exactness.commits import Record, Stored
from pyrite.durable.queues.queues import Delivery, Queues, Refused
from tests.durable.queues.places import NUMBERS, Job, NatsPlace, Place, body, following

PEERS = st.integers(0, 1)


@dataclass
class Model:
    pending: set[str] = field(default_factory=set)
    in_flight: set[str] = field(default_factory=set)
    done: dict[str, str] = field(default_factory=dict)
    words: list[list[str]] = field(default_factory=list)
    record: Stored = field(default_factory=lambda: Stored(0, Record()))
    state: bytes = b""
    staged: dict[str, list[str]] = field(default_factory=dict)


class Machine(RuleBasedStateMachine):
    place: Place
    peers: tuple[Queues, Queues]

    @initialize(splits=st.integers(0, 8))
    def begin(self, splits: int) -> None:
        self.job = Job(self.peers[0]).begin(*(str(n) for n in range(splits)))
        self.owners = [self.place.owner(), self.place.owner()]
        self.model = Model({str(n) for n in range(splits)})
        self.model.words = [[] for _ in range(self.peers[0].servers)]
        self.delivered: list[Delivery] = []
        self.held: list[Delivery] = []
        self.commits: list[tuple[int, list[Delivery], str]] = []
        self.seen = [Stored(0, Record())]

    @rule(peer=PEERS, limit=st.integers(1, 4))
    def take(self, peer: int, limit: int) -> None:
        got = self.peers[peer].take(self.job.map, owner=self.owners[peer], limit=limit)
        names = [body(delivery) for delivery in got]
        assert set(names) <= self.model.pending
        assert len(set(names)) == len(names) <= limit
        if not isinstance(self.place, NatsPlace):  # there, what was given back may come later
            assert len(names) == min(limit, len(self.model.pending))
        self.model.pending -= set(names)
        self.model.in_flight |= set(names)
        self.delivered += got
        self.held += got

    @precondition(lambda self: self.delivered)
    @rule(peer=PEERS, data=st.data())
    def commit_taken(self, peer: int, data: st.DataObject) -> None:
        """Of anything that was ever delivered, so also what a zombie would commit."""
        server = data.draw(st.sampled_from(sorted({one.server for one in self.delivered})))
        there = [one for one in self.delivered if one.server == server]
        unique = st.lists(st.sampled_from(there), min_size=1, max_size=3, unique_by=body)
        taken, attempt = data.draw(unique), f"attempt {next(NUMBERS)}"
        accepted = not any(body(one) in self.model.done for one in taken)
        self._commit_taken(peer, taken, attempt, accepted)

    @precondition(lambda self: self.commits)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        peer, taken, attempt = data.draw(st.sampled_from(self.commits))
        assert self.peers[peer].commit_taken(taken, attempt, [self.job.word(attempt)])

    def _commit_taken(self, peer: int, taken: list[Delivery], attempt: str, accepted: bool) -> None:
        word = self.job.word(attempt)
        assert self.peers[peer].commit_taken(taken, attempt, [word]) is accepted
        if accepted:
            self.commits.append((peer, taken, attempt))
            names = {body(one) for one in taken}
            self.model.done |= dict.fromkeys(names, attempt)
            self.model.pending -= names
            self.model.in_flight -= names
            self.held = [one for one in self.held if body(one) not in names]
            self.model.words[taken[0].server].append(attempt)

    @precondition(lambda self: self.held)
    @rule(peer=PEERS, data=st.data())
    def give_back(self, peer: int, data: st.DataObject) -> None:
        given = data.draw(st.sampled_from(self.held))
        self.peers[peer].give_back([given])
        self.held.remove(given)
        self.model.in_flight.remove(body(given))
        self.model.pending.add(body(given))

    @rule(peer=PEERS)
    def drop_done(self, peer: int) -> None:
        left = self.peers[peer].drop_done(self.delivered)
        assert left == [one for one in self.delivered if body(one) not in self.model.done]

    @rule(peer=PEERS, attempt=st.sampled_from("xyz"), count=st.integers(1, 3))
    def stage(self, peer: int, attempt: str, count: int) -> None:
        if peer == 0:
            words = [f"staged {next(NUMBERS)}" for _ in range(count)]
            self.peers[peer].stage(self.job.out, attempt, [self.job.word(one) for one in words])
            self.model.staged.setdefault(attempt, []).extend(words)

    @rule(
        peer=PEERS,
        follows=st.integers(-2, -1),
        raises=st.booleans(),
        attempt=st.sampled_from(["x", "y", "z", "none"]),
        state=st.none() | st.binary(max_size=5),
    )
    def commit(
        self, peer: int, follows: int, raises: bool, attempt: str, state: bytes | None
    ) -> None:
        """With the last record or the one before, and with its epoch or a lower one."""
        last = self.seen[follows] if len(self.seen) > 1 else self.seen[-1]
        epoch = max(0, self.model.record.record.epoch + (1 if raises else -1))
        commit = following(last, attempt, epoch=epoch)
        word = f"word {next(NUMBERS)}"
        is_right = last == self.model.record and epoch >= last.record.epoch
        queues, out = self.peers[peer if attempt == "none" else 0], self.job.out
        if not is_right:
            with pytest.raises(Refused):
                queues.commit(out, commit, [self.job.word(word)], state=state)
            return
        self.model.record = queues.commit(out, commit, [self.job.word(word)], state=state)
        self.seen.append(self.model.record)
        self.model.state = self.model.state if state is None else state
        published = self.model.staged.get(attempt, [])
        self.model.words[queues.home(out)] += [*published, word]
        self.model.staged.clear()

    @invariant()
    def is_like_the_model(self) -> None:
        if not hasattr(self, "model"):
            return
        for queues in self.peers:
            self.job.queues = queues
            pending, in_flight = self.job.held()
            assert pending + in_flight == len(self.model.pending) + len(self.model.in_flight)
            assert in_flight >= len(self.model.in_flight)
            assert queues.record(self.job.out) == self.model.record
            assert queues.state(self.job.out, self.model.record) == self.model.state
            assert self.job.words() == [word for words in self.model.words for word in words]

    def teardown(self) -> None:
        if hasattr(self, "job"):
            self.peers[0].close_job(self.job.name)


def test_queues_are_like_their_model(place: Place) -> None:
    if isinstance(place, NatsPlace):
        place.ack_wait = 60
    peers = (place.open(), place.open())
    machine = type("Peers", (Machine,), {"place": place, "peers": peers})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=12 if isinstance(place, NatsPlace) else 40,
            stateful_step_count=20,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
