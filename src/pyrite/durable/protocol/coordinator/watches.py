"""What the coordinator watches in the store. To arm a watch is also to read the node: what is
already there is an event at once. So nothing is lost that happened while nobody watched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pyrite.durable.protocol.coordinator.events import (
    Ack,
    Cancel,
    Complete,
    Death,
    Event,
    Fail,
    Plan,
    Reject,
    Seal,
)
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import FAILED, UNTOUCHED
from pyrite.durable.protocol.workflow import Workflow
from pyrite.errors import InvalidDAG

MOST_REASON: Final = 50_000
"""Characters of the reason of a failure. An entry of the log has it twice, and must fit into a node
whatever the characters are."""


@dataclass(frozen=True, slots=True)
class PulseWatch:
    peer: str

    @property
    def path(self) -> str:
        return paths.pulse(self.peer)

    def event(self, data: str | None) -> Event | None:
        return Death(self.peer) if data is None else None


@dataclass(frozen=True, slots=True)
class CancelWatch:
    """Armed with the plan of a job, for a request that came before it. Later ones are new children
    of /cancel."""

    job: str

    @property
    def path(self) -> str:
        return paths.cancel(self.job)

    def event(self, data: str | None) -> Event | None:
        return None if data is None else Cancel(self.job)


@dataclass(frozen=True, slots=True)
class RequestWatch:
    """A request of a peer. The coordinator created the node; it is an event when the peer has set
    it."""

    request: Literal["ack", "seal", "completion"]
    peer: str
    offer: int

    @property
    def path(self) -> str:
        return f"/{self.request}/{self.offer}"

    def event(self, data: str | None) -> Event | None:
        if data is None or data == UNTOUCHED:
            return None
        if data.startswith(FAILED):
            reason = data.removeprefix(FAILED)[:MOST_REASON]
            return Fail(self.peer, self.offer, reason)
        kinds: dict[str, type[Ack | Seal | Complete]]
        kinds = {"ack": Ack, "seal": Seal, "completion": Complete}
        return kinds[self.request](self.peer, self.offer)


Watch = PulseWatch | CancelWatch | RequestWatch


def planned(job: str, workflow: str | None) -> Plan | Reject:
    """The event that the node /plan/<job> stands for. `workflow` is the data of /workflow/<job>."""
    if workflow is None:
        return Reject(job, f"job {job!r} has no workflow; submit it again")
    try:
        return Plan(job, Workflow.read(workflow))
    except InvalidDAG as problem:
        return Reject(job, str(problem))
    except (ValueError, TypeError) as problem:
        return Reject(job, f"the workflow of job {job!r} cannot be read: {problem}")
