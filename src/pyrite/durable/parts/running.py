"""Runs the vertices of one part on the engine: messages in, messages out."""

from __future__ import annotations

import math
import os
import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyrite.collections.stored.fields import field_of
from pyrite.columns.packing.item_pickling import dumps
from pyrite.durable.parts.code import JobCode
from pyrite.durable.parts.egress import CannotSend, Egress
from pyrite.durable.parts.links import QueueLinks
from pyrite.durable.parts.told import Added, Measured, Reported
from pyrite.durable.planning.tasks import PlannedTask
from pyrite.durable.protocol.workflow import Part
from pyrite.durable.queues.queues import Outgoing
from pyrite.engine.driven import DrivenRun, SavedProcessor
from pyrite.engine.failure import Failed
from pyrite.engine.fusion import fuse
from pyrite.engine.member import LifeCycleFailed, MemberRun, RunContext
from pyrite.engine.metrics import VertexMetrics, gather, since
from pyrite.engine.plan import Topology
from pyrite.engine.routing import RoutingFailed
from pyrite.exchange.collected import AddOnlyCollections, Collected
from pyrite.exchange.groups import unpacked

OUTPUT_BYTES: Final = 8 << 20
"""How many bytes of output a part holds before it commits or stages them."""
LONGEST_WAIT: Final = 0.05
"""How many seconds pass without a check whether the part must stop."""


class PartFailed(Exception):
    """A processor of the part raised."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed)
        self.failed = failed


class Running:
    """One run of a part, from a record or from the start. Close it."""

    def __init__(
        self,
        code: JobCode,
        task: PlannedTask,
        part: Part,
        *,
        attempt: str,
        files: Path | None,
        most_bytes: int,
        check: Callable[[], None],
    ) -> None:
        """`check` is called between rounds, often: it raises when the part must stop."""
        self._task = task
        self._check = check
        self._pid = os.getpid()
        self._index = part.member
        self._woken = threading.Event()
        self._measured: dict[str, VertexMetrics] = {}
        self.egress = Egress(part.job, code.planned, task, most_bytes)
        topology = code.planned.topology
        self._vertices = Topology(task.vertices, topology.member_count, topology.partition_count)
        self._context = RunContext(
            job_name=code.job_name,
            job_id=code.job_id,
            execution_id=code.execution_id,
            member_count=topology.member_count,
            collections=AddOnlyCollections(self._collect, "a part of a durable job"),
            attempt=attempt,
            files=files,
            wake=self._woken.set,
        )
        here = {vertex.name for vertex in task.vertices}
        self._links = QueueLinks(topology, self.egress, part.member)
        self._member = MemberRun(
            self._context,
            topology,
            fuse(self._vertices, {name: code.steps.get(name) for name in here}),
            index=part.member,
            suppliers={n: s for n, s in code.suppliers[part.member].items() if n in here},
            single_partitions=code.single_partitions,
            links=self._links,
        )
        try:
            self._member.prepare(_warn_slow)
        except LifeCycleFailed as failed:
            self._end_children()
            self.close(failed)
            raise PartFailed(failed.failed) from failed
        except BaseException as error:
            self.close(error)
            raise
        self._driven = DrivenRun(self._member)

    # Input

    def feed(self, edge: str, body: bytes) -> None:
        plan = self._task.inbound[edge]
        assert plan is not None, "the edge that starts a source carries no items"
        inlet = self._links.inlet(plan)
        for packet in unpacked(body):
            inlet.feed(packet)

    def end(self, edge: str) -> None:
        plan = self._task.inbound[edge]
        if plan is not None:
            self._links.inlet(plan).has_ended = True

    # Work

    def settle(
        self, on_output: Callable[[], None] | None = None, *, seconds: float = math.inf
    ) -> bool:
        """Runs until a whole round is idle, or for so many seconds and until what is on its way has
        arrived. Returns whether the sources are idle, too. `on_output` is called when much output
        waits. Processors that wait for another thread may hold items then, but only as much as they
        can save: what they have not taken is waited for."""
        give_up = time.monotonic() + seconds
        while self._goes_on():
            if on_output is not None and self.egress.size >= OUTPUT_BYTES:
                on_output()
            if time.monotonic() > give_up:  # sources that go on must not keep the rest busy
                while self._goes_on(pauses_sources=True):
                    pass
                return False
        return True

    def _goes_on(self, *, pauses_sources: bool = False) -> bool:
        if self._round(pauses_sources=pauses_sources):
            return True
        is_behind = self.is_waiting and not self.is_quiet
        if is_behind:
            self.wait(LONGEST_WAIT)
        return is_behind

    def wait(self, seconds: float) -> bool:
        """Sleeps until a processor that waits for another thread can go on. Returns whether that
        has happened."""
        was_woken = self._woken.wait(seconds)
        self._woken.clear()
        return was_woken

    def _round(self, *, pauses_sources: bool = False) -> bool:
        progress = self._driven.round(pauses_sources=pauses_sources)
        self._end_children()
        failure = self._context.halt.failure
        if failure is not None:
            raise PartFailed(failure)
        self._check()
        self._packing(self.egress.settle)
        return progress

    def _end_children(self) -> None:
        """A function of the user's may have forked this process, and the child may have come back
        here instead of ending. It must not work in the place of its parent."""
        if os.getpid() != self._pid:
            os._exit(0)

    def take(self) -> list[Outgoing]:
        """The messages that wait, those that are not full included."""
        outgoing: list[Outgoing] = self._packing(self.egress.take)
        return outgoing

    def _packing(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except RoutingFailed as failed:
            source = next(
                (v.name for v in self._task.vertices for e in v.outbound if e.name == failed.edge),
                None,
            )
            raise PartFailed(
                Failed(failed.error, vertex=source, edge=failed.edge, item=failed.item)
            ) from failed
        except CannotSend as error:
            raise PartFailed(Failed(error)) from error

    @property
    def is_over(self) -> bool:
        return self._driven.is_over

    @property
    def is_waiting(self) -> bool:
        """Whether a processor waits for another thread, or before it tries an item again."""
        return self._driven.is_waiting

    @property
    def can_be_saved(self) -> bool:
        return self._driven.can_be_saved

    @property
    def is_quiet(self) -> bool:
        return self._driven.is_quiet

    def save(self) -> bytes | None:
        """The state of the processors; None if it cannot be pickled."""
        try:
            saved = self._driven.save()
        except LifeCycleFailed as failed:
            raise PartFailed(failed.failed) from failed
        try:
            return dumps(saved, next((pair for each in saved for pair in each.pairs), None))
        except Exception:
            return None

    def resume(self, state: bytes) -> None:
        self.egress.forget_told()
        saved: list[SavedProcessor] = pickle.loads(state)
        try:
            self._driven.resume(saved)
        except LifeCycleFailed as failed:
            raise PartFailed(failed.failed) from failed

    def report(self) -> None:
        """Tells the completion what the sinks' writers have reported."""
        for vertex, reports in self._member.reports().items():
            if any(report is not None for report in reports):
                self.egress.tell(Reported(vertex, reports))

    def measure(self) -> dict[str, VertexMetrics]:
        """Tells the completion what the processors have done since the last time. It counts only
        if it is committed, like everything else."""
        now = self._gathered()
        more = since(now, self._measured)
        self.egress.tell(Measured(self._index, more))
        self._measured = now
        return more

    def since_measured(self) -> dict[str, VertexMetrics]:
        """What the processors have done since then."""
        return since(self._gathered(), self._measured)

    def _gathered(self) -> dict[str, VertexMetrics]:
        now = gather(self._vertices, [(self._member.stretch_of, self._member.processor_tasklets)])
        for vertex in self._task.vertices:
            if any(not edge.source for edge in vertex.inbound):  # splits are not items
                now[vertex.name]["received"] = 0
                for processor in now[vertex.name]["processors"]:
                    processor["received"] = 0
        return now

    def complete(self) -> None:
        """Completes the suppliers, after everything else, and before the last commit."""
        try:
            self._member.complete()
        except LifeCycleFailed as failed:
            raise PartFailed(failed.failed) from failed

    def close(self, error: BaseException | None = None) -> None:
        self._member.close(error)

    def _collect(self, collected: Collected) -> None:
        if collected.kind == "map":
            for key in collected.contents:  # one that cannot be stored is refused at its vertex
                field_of(key)
        self.egress.tell(Added(collected))


def _warn_slow(label: str, seconds: float) -> None:
    """Does nothing: no other job uses the thread."""
