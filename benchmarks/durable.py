"""Durable jobs: what an event costs their coordinator, with few and with many peers and parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from rich.console import Console
from rich.table import Table

from benchmarks.ratios import WrongOutcome, mark
from pyrite.durable.coordinator.leader import Leader
from pyrite.durable.protocol.coordinator.log import MOST_WRITES
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import TOUCHED, JobNode, JobStatus, Payload
from pyrite.durable.protocol.workflow import Edge, Task, Workflow
from pyrite.durable.store.sqlite import SqliteStore
from pyrite.durable.store.store import Store

MOST_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class Size:
    peers: int
    parts: int

    def __str__(self) -> str:
        return f"{self.peers:,} peers, {self.parts:,} parts"


FEW, MANY = Size(100, 1_000), Size(1_000, 10_000)


def run(console: Console) -> None:
    console.print(coordinator())


def coordinator(rounds: int = 2) -> Table:
    """The cost of an event, for few and many peers and parts; and without putting an entry of the
    log, its writes and the checkpoint into one transaction."""
    cases: dict[str, Callable[[], Cost]] = {
        str(FEW): lambda: cost(FEW),
        str(MANY): lambda: cost(MANY),
        f"{FEW}, several transactions": lambda: cost(FEW, most_writes=2),
    }
    table = Table("coordinator in a folder", title="a durable job", title_justify="left")
    for heading in ("events", "µs per event", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("aim")
    first: float | None = None
    for name, measure in cases.items():
        best = min((measure() for _ in range(rounds)), key=lambda found: found.per_event)
        first = first or best.per_event
        ratio = best.per_event / first
        aim = f"at most {MOST_RATIO:g} x: {mark(ratio <= MOST_RATIO)}" if name == str(MANY) else ""
        table.add_row(name, f"{best.events:,}", f"{best.per_event * 1e6:.0f}", f"{ratio:.2f}", aim)
    return table


@dataclass(frozen=True, slots=True)
class Cost:
    """What the leader has done, without the time of the peers."""

    events: int
    seconds: float

    @property
    def per_event(self) -> float:
        return self.seconds / self.events


def cost(size: Size, *, most_writes: int = MOST_WRITES) -> Cost:
    """A job from its submission to its end, with peers that do nothing but what the protocol asks
    of them."""
    with TemporaryDirectory() as folder:
        store, office = SqliteStore(Path(folder)), SqliteStore(Path(folder))
        crowd = Crowd(store, size)
        leader = Leader(office, lambda *_: None, most_writes=most_writes)
        leader.begin()
        spent = 0.0
        while crowd.goes_on():
            began = perf_counter()
            while leader.step():
                pass
            spent += perf_counter() - began
        leader.stop()
        events = int(store.get(paths.CHECKPOINT) or "0")
        for each in (store, office):
            each.close()
    return Cost(events, spent)


class Crowd:
    """A client and many peers, which share one session of the store."""

    def __init__(self, store: Store, size: Size) -> None:
        self._store = store
        self._peers = [f"peer{number:04}" for number in range(size.peers)]
        self._asked: dict[str, tuple[int, str]] = {}
        workflow = Workflow((Task("only", "sequential", size.parts, (Edge("splits", None),)),))
        store.create(paths.workflow("job"), workflow.text())
        store.create(paths.plan("job"))
        for peer in self._peers:
            store.create_ephemeral(paths.pulse(peer))
            store.create(paths.peer(peer))

    def goes_on(self) -> bool:
        """Each peer does the next thing. False if the job is complete."""
        text = self._store.get(paths.job("job"))
        status = JobNode.read(text).status if text else JobStatus.RUNNING
        if status is JobStatus.COMPLETE:
            return False
        if status is not JobStatus.RUNNING:
            raise WrongOutcome(f"the job is {status.value}")
        for path, text in self._store.below("/payload").items():
            if text:
                self._act(path.rpartition("/")[2], Payload.read(text).offer)
        return True

    def _act(self, peer: str, offer: int) -> None:
        before, last = self._asked.get(peer, (0, ""))
        request = "ack" if before != offer else {"ack": "seal", "seal": "completion"}.get(last)
        if request is not None:
            self._store.set(f"/{request}/{offer}", TOUCHED)
            self._asked[peer] = (offer, request)
