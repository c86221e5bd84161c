"""Who is a member when members come and go: decided from lists of nodes, without ZooKeeper."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite.cluster.elastic.peers import ElasticPeers
from pyrite.cluster.elastic.registering import Todo, todo
from pyrite.cluster.elastic.roster import Node, Roster
from pyrite.wire.identity import Identity

Process = tuple[str, str]
"""An address and an incarnation."""


@dataclass
class FakeZooKeeper:
    registered: dict[Node, int] = field(default_factory=dict)
    """With the session that made it."""
    ready: dict[Node, int] = field(default_factory=dict)
    numbers: Any = field(default_factory=itertools.count)

    def expire(self, sessions: set[int]) -> None:
        self.registered = {n: s for n, s in self.registered.items() if s not in sessions}
        self.ready = {n: s for n, s in self.ready.items() if s not in sessions}


@dataclass
class FakeMember:
    process: Process
    session: int
    own: Node | None = None
    roster: Roster = field(default_factory=Roster)

    def look(self, zk: FakeZooKeeper, connected: dict[str, str], *, reply: bool = True) -> None:
        """What a member does when something may have changed, with the code that decides it."""
        address, incarnation = self.process
        roster = self.roster
        may_announce = roster.own if not roster.missing(connected) else None
        found = todo(
            *self.process, self.own, [*zk.registered], [*zk.ready], may_announce=may_announce
        )
        assert found.displaced_by is None
        if found.create:
            node = Node(next(zk.numbers), address, incarnation)
            zk.registered[node] = self.session
            self.own = node if reply else None
            return
        for left in found.delete:
            zk.registered.pop(left, None)
            zk.ready.pop(left, None)
        if found.announce:
            assert self.own is not None
            zk.ready[self.own] = self.session
        self.roster = Roster.of(self.own, zk.registered, zk.ready)


class World:
    """Members that start, die, lose their session, look at ZooKeeper and dial, in any order."""

    def __init__(self) -> None:
        self.zk = FakeZooKeeper()
        self.running: dict[str, FakeMember] = {}
        self.links: set[frozenset[Process]] = set()
        self.numbers = itertools.count()
        self.dead_sessions: set[int] = set()

    def do(self, what: str, address: str) -> None:
        member = self.running.get(address)
        if what == "start":
            number = next(self.numbers)
            self.running.setdefault(address, FakeMember((address, f"i{number}"), number))
        elif what == "expire the dead":
            self.zk.expire(self.dead_sessions)
        elif member is not None:
            getattr(self, what)(member)

    def kill(self, member: FakeMember) -> None:
        del self.running[member.process[0]]
        self.links = {link for link in self.links if member.process not in link}
        self.dead_sessions.add(member.session)

    def expire(self, member: FakeMember) -> None:
        self.zk.expire({member.session})
        self._new_session(member)

    def forget(self, member: FakeMember) -> None:
        """It has a new session, and the nodes of the old one are still there."""
        self.dead_sessions.add(member.session)
        self._new_session(member)

    def _new_session(self, member: FakeMember) -> None:
        member.session = next(self.numbers)
        member.own = None

    def look(self, member: FakeMember) -> None:
        member.look(self.zk, self.connected(member))

    def look_without_reply(self, member: FakeMember) -> None:
        member.look(self.zk, self.connected(member), reply=False)

    def dial(self, member: FakeMember) -> None:
        for node in member.roster.before:
            other = self.running.get(node.address)
            if other is not None and node.address not in self.connected(member):
                self.links.add(frozenset((member.process, other.process)))

    def join(self, member: FakeMember) -> None:
        for step in (self.look, self.look, self.dial, self.look, self.look):
            step(member)

    def connected(self, member: FakeMember) -> dict[str, str]:
        return dict(
            other
            for link in self.links
            if member.process in link
            for other in link - {member.process}
        )

    def chosen(self, member: FakeMember) -> tuple[Process, ...]:
        return member.roster.chosen(*member.process, self.connected(member))

    def settle(self) -> None:
        self.zk.expire(self.dead_sessions)
        for _ in range(6):
            for member in self.running.values():
                self.look(member)
                self.dial(member)


FAULTS = ("kill", "expire", "forget", "look_without_reply", "expire the dead")
STEPS = (*FAULTS, "start", "start", *("look", "dial", "join") * 4)
steps = st.lists(
    st.tuples(st.sampled_from(STEPS), st.sampled_from("abc")), min_size=20, max_size=80
)


@settings(max_examples=200)
@given(steps)
def test_members_of_an_execution_run_and_are_connected_to_each_other(
    done: list[tuple[str, str]],
) -> None:
    world = World()
    for what, address in done:
        world.do(what, address)
        for member in world.running.values():
            if member.own is None or member.own not in member.roster.ready:
                continue  # it coordinates nothing before it is ready
            chosen = world.chosen(member)
            assert member.process in chosen
            for a, b in itertools.combinations(chosen, 2):
                assert frozenset((a, b)) in world.links


@settings(max_examples=200)
@given(steps)
def test_when_all_have_looked_all_members_agree_and_nothing_is_doubled(
    done: list[tuple[str, str]],
) -> None:
    world = World()
    for what, address in done:
        world.do(what, address)
    world.settle()
    running = {member.process for member in world.running.values()}
    assert sorted((n.address, n.incarnation) for n in world.zk.registered) == sorted(running)
    assert world.zk.ready.keys() == world.zk.registered.keys()
    assert len({world.chosen(member) for member in world.running.values()}) == bool(running)
    for member in world.running.values():
        assert set(world.chosen(member)) == running


@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from("abc"), st.sampled_from("xy"))))
def test_of_two_members_exactly_one_dials(nodes: list[tuple[int, str, str]]) -> None:
    registered = {Node(*node) for node in nodes}
    current = Roster.of(None, registered, ()).nodes
    for a, b in itertools.combinations(current, 2):
        a_dials = b in Roster.of(a, registered, ()).before
        b_dials = a in Roster.of(b, registered, ()).before
        assert a_dials != b_dials


@given(st.integers(0, 10**10), st.sampled_from(("a:1", "my-host-1:5701", "[::1]:5", "x@y:3")))
def test_a_node_is_read_from_its_name(number: int, address: str) -> None:
    node = Node(number, address, "00ff")
    assert Node.parsed(node.name) == node


@pytest.mark.parametrize("name", ["", "x", "a@b", "a@b-", "@b-1", "a@-1", "a-1", "a@b-x"])
def test_what_is_no_node_is_left_alone(name: str) -> None:
    assert Node.parsed(name) is None


def test_a_member_whose_address_was_taken_by_another_process_gives_up() -> None:
    mine, other = Node(1, "a", "i1"), Node(2, "a", "i2")
    for registered in ([mine, other], [other]):
        assert todo("a", "i1", mine, registered, [], may_announce=None) == Todo(displaced_by=other)
    assert todo("a", "i2", other, [mine, other], [mine], may_announce=None).delete == {mine}


def test_a_node_that_somebody_deleted_is_made_again() -> None:
    assert todo("a", "i1", Node(1, "a", "i1"), [], [], may_announce=None) == Todo(create=True)


# How a member sees the others.


class Seen:
    def __init__(self) -> None:
        self.changes: list[list[str]] = []
        self.announced: list[Node] = []
        self.peers = ElasticPeers(
            Identity(address="b", incarnation="ib", cluster="c"),
            on_change=lambda addresses: self.changes.append(list(addresses)),
            announce=self.announced.append,
        )


A, B, C = Node(1, "a", "ia"), Node(2, "b", "ib"), Node(3, "c", "ic")


def connection(node: Node, token: str = "t") -> Any:
    peer = SimpleNamespace(address=node.address, incarnation=node.incarnation, connection=token)
    return SimpleNamespace(peer=peer, is_open=True)


def test_a_member_is_ready_when_it_is_connected_to_all_before_it() -> None:
    seen = Seen()
    seen.peers.listed(Roster.of(B, [A, B, C], [A]))
    assert seen.peers.to_dial(0) == ["a"]
    assert not seen.announced
    assert "not connected to a yet" in (seen.peers.objection or "")
    seen.peers.connected(connection(A))
    assert seen.announced == [B]
    seen.peers.listed(Roster.of(B, [A, B, C], [A, B]))
    assert seen.peers.objection is None
    assert seen.changes == [["b", "a"]]


def test_a_member_that_is_lost_is_left_out_and_dialed_as_long_as_it_is_listed() -> None:
    seen = Seen()
    seen.peers.connected(first := connection(A))
    seen.peers.listed(Roster.of(B, [A, B], [A, B]))
    seen.peers.lost(first, 5.0)
    assert seen.peers.incarnations == [("b", "ib")]
    assert seen.peers.to_dial(5.0) == ["a"]
    seen.peers.not_reached("a", 5.0, "nobody listens there")
    assert seen.peers.to_dial(6.0) == ["a"]
    seen.peers.not_reached("a", 6.0, "nobody listens there")
    seen.peers.listed(Roster.of(B, [B], [B]))
    assert seen.peers.next_dial is None
    assert seen.changes == [["b", "a"], ["b"]]


def test_a_member_is_not_dialed_twice_at_a_time() -> None:
    seen = Seen()
    seen.peers.listed(Roster.of(B, [A, B], []))
    assert seen.peers.to_dial(0) == ["a"]
    seen.peers.listed(Roster.of(B, [B], []))
    seen.peers.listed(Roster.of(B, [A, B], []))
    assert seen.peers.to_dial(0) == []
    seen.peers.not_reached("a", 0.0, "nobody listens there")
    assert seen.peers.to_dial(1) == ["a"]


def test_a_new_incarnation_at_the_same_address_is_used_once_it_is_ready() -> None:
    seen, new = Seen(), Node(4, "a", "new")
    seen.peers.connected(connection(new))
    seen.peers.listed(Roster.of(B, [A, B], [A, B]))
    assert seen.changes == [["b"]]
    seen.peers.listed(Roster.of(B, [A, B, new], [A, B, new]))
    assert seen.changes[1:] == [["a", "b"]]
    assert seen.peers.incarnations == [("a", "new"), ("b", "ib")]


@pytest.mark.parametrize("order", [("1", "2"), ("2", "1")])
def test_of_two_connections_with_one_process_both_sides_keep_the_same(
    order: tuple[str, str],
) -> None:
    seen = Seen()
    both = {token: connection(A, token) for token in order}
    assert seen.peers.connected(both[order[0]]) is None
    assert seen.peers.connected(both[order[1]]) is both["2"]
    assert seen.peers.get("a") is both["1"]
