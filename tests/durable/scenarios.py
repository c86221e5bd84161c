"""The ten scenarios of the specification: what coordinator and peers do when one of them dies. They
run on a cluster in memory, and on real stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyrite.durable.protocol.tree.nodes import JobStatus
from pyrite.durable.protocol.workflow import Workflow
from tests.durable.protocol.shapes import ONE, ONE_SEQUENTIAL


class Cast(Protocol):
    """The coordinator and the peers of a scenario."""

    def coordinate(self) -> object:
        """Lets the coordinator do all that there is to do."""

    def submit(self, job: str, workflow: Workflow) -> None: ...

    def status(self, job: str) -> JobStatus | None: ...

    def time_out(self, peer: str) -> None:
        """The time of the peer's last offer is over."""

    def born(self, name: str) -> object: ...

    def kill(self, name: str) -> None: ...

    def expire(self, name: str) -> None:
        """The peer loses its pulse, and may go on for a while."""

    def look(self, name: str) -> None:
        """A peer looks at its offer."""

    def act(self, name: str) -> bool:
        """The next thing that a peer does for the offer that it knows of; whether there is one."""

    def mode(self, name: str) -> str:
        """What the peer has done last for its offer."""

    def may_commit(self, name: str) -> bool: ...

    def states(self, name: str) -> str:
        """All states that the peer was in."""


Scenario = Callable[[Cast], None]
SCENARIOS: list[Scenario] = []


def scenario(run: Scenario) -> Scenario:
    SCENARIOS.append(run)
    return run


def go(cast: Cast, peer: str, *acts: str) -> None:
    """The peer does these things; the coordinator handles each before the next."""
    for act in acts:
        cast.coordinate()
        if act == "look":
            cast.look(peer)
        else:
            assert cast.act(peer), f"{peer} cannot {act}"
            assert cast.mode(peer) == act
    cast.coordinate()


TAKE = ("look", "working")
SEAL = ("asked", "sealed")
ALL = (*TAKE, *SEAL, "completed")


def begin(cast: Cast, *peers: str, job: str = "job1") -> None:
    for peer in peers:
        cast.born(peer)
        cast.coordinate()
    cast.submit(job, ONE)
    cast.coordinate()


def is_complete(cast: Cast, job: str = "job1") -> bool:
    return cast.status(job) is JobStatus.COMPLETE


@scenario
def one_peer_does_three_jobs(cast: Cast) -> None:
    begin(cast, "p1")
    go(cast, "p1", *ALL)
    for job in ("job2", "job3"):
        cast.submit(job, ONE_SEQUENTIAL)
        go(cast, "p1", *ALL)
    assert cast.states("p1") == "idle" + " acking active sealing idle" * 3
    assert all(is_complete(cast, job) for job in ("job1", "job2", "job3"))


@scenario
def one_peer_times_out_while_acking(cast: Cast) -> None:
    begin(cast, "p1")
    cast.look("p1")
    for _ in range(2):  # a new leader gives the peer its time again
        cast.time_out("p1")
        cast.coordinate()
    assert not cast.may_commit("p1")
    go(cast, "p1", "working")  # too late: there is no node to set
    assert cast.states("p1") == "idle acking revoked"
    cast.look("p1")
    cast.born("p2")
    go(cast, "p2", *ALL)
    assert cast.states("p1") == "idle acking revoked dead"
    assert is_complete(cast)


@scenario
def one_peer_dies_while_acking(cast: Cast) -> None:
    begin(cast, "p1")
    cast.kill("p1")
    cast.coordinate()
    cast.time_out("p1")
    cast.born("p2")
    go(cast, "p2", *ALL)
    assert cast.states("p1") == "idle acking dead"
    assert is_complete(cast)


@scenario
def one_peer_dies_while_active(cast: Cast) -> None:
    begin(cast, "p1")
    go(cast, "p1", *TAKE)
    cast.kill("p1")
    cast.born("p2")
    go(cast, "p2", *ALL)
    assert cast.states("p1") == "idle acking active dead"
    assert is_complete(cast)


@scenario
def one_peer_dies_while_sealing(cast: Cast) -> None:
    begin(cast, "p1")
    go(cast, "p1", *TAKE, "asked")
    cast.kill("p1")
    cast.coordinate()
    assert not is_complete(cast)
    cast.born("p2")
    go(cast, "p2", *ALL)
    assert cast.states("p1") == "idle acking active sealing dead"
    assert cast.states("p2") == "idle acking active sealing idle"
    assert is_complete(cast)


@scenario
def one_peer_dies_after_its_completion(cast: Cast) -> None:
    begin(cast, "p1")
    go(cast, "p1", *TAKE, *SEAL)
    cast.act("p1")
    cast.kill("p1")
    cast.coordinate()
    assert cast.states("p1") == "idle acking active sealing idle dead"
    assert is_complete(cast)


@scenario
def the_completion_of_a_dead_peer_counts_if_nobody_is_on_the_part(cast: Cast) -> None:
    begin(cast, "p1")
    go(cast, "p1", *TAKE, *SEAL)
    cast.expire("p1")
    cast.coordinate()
    assert cast.states("p1") == "idle acking active sealing dead"
    go(cast, "p1", "completed")
    assert is_complete(cast)


@scenario
def the_completion_of_a_dead_peer_does_not_count_if_somebody_is_on_the_part(cast: Cast) -> None:
    begin(cast, "p1")
    go(cast, "p1", *TAKE, *SEAL)
    cast.expire("p1")
    cast.born("p2")
    go(cast, "p2", *TAKE)
    go(cast, "p1", "completed")
    assert not is_complete(cast)
    go(cast, "p2", *SEAL, "completed")
    assert is_complete(cast)


@scenario
def two_peers_and_one_waits(cast: Cast) -> None:
    begin(cast, "p1", "p2")
    go(cast, "p1", *TAKE)
    go(cast, "p2", *TAKE)
    go(cast, "p1", "asked")
    go(cast, "p2", *SEAL)
    assert not is_complete(cast)
    go(cast, "p2", "completed")
    assert cast.states("p1") == "idle acking active waiting idle"
    assert cast.states("p2") == "idle acking active sealing idle"
    assert is_complete(cast)


@scenario
def one_peer_joins_while_another_seals(cast: Cast) -> None:
    begin(cast, "p1")
    go(cast, "p1", *TAKE, *SEAL)
    cast.born("p2")
    go(cast, "p2", *TAKE)
    go(cast, "p1", "completed")
    assert not is_complete(cast)
    go(cast, "p1", *TAKE, "asked")  # it is offered the part again, and waits for p2
    go(cast, "p2", *SEAL, "completed")
    assert cast.states("p1") == "idle acking active sealing idle acking active waiting idle"
    assert cast.states("p2") == "idle acking active sealing idle"
    assert is_complete(cast)


@scenario
def one_peer_joins_late_and_dies(cast: Cast) -> None:
    begin(cast, "p1")
    go(cast, "p1", *TAKE, *SEAL)
    cast.born("p2")
    go(cast, "p2", *TAKE)
    cast.kill("p2")
    go(cast, "p1", "completed")
    assert cast.states("p1") == "idle acking active sealing idle"
    assert cast.states("p2") == "idle acking active dead"
    assert is_complete(cast)


@scenario
def one_of_two_peers_dies_while_sealing(cast: Cast) -> None:
    begin(cast, "p1", "p2")
    go(cast, "p1", *TAKE)
    go(cast, "p2", *TAKE)
    go(cast, "p1", "asked")
    go(cast, "p2", "asked")
    cast.kill("p2")
    go(cast, "p1", *ALL)  # it was released and is offered the part again
    assert cast.states("p1") == "idle acking active waiting idle acking active sealing idle"
    assert cast.states("p2") == "idle acking active sealing dead"
    assert is_complete(cast)
