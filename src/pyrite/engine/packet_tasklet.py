"""A tasklet whose processor reads the packets of a distributed edge directly, without a queue. It
is used where a single processor receives all packets of the edge.

If the packets are sorted by partition, a grouping emits and frees the groups of each partition as
soon as that partition has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyrite.boxes import Outbox
from pyrite.engine.ends import Inlet, Packet
from pyrite.engine.failure import Halt
from pyrite.engine.plan import EdgePlan
from pyrite.engine.queues import Done
from pyrite.engine.routing import Route
from pyrite.engine.tasklets import IDLE, PROGRESS, InboundEdge, ProcessorTasklet
from pyrite.processor import Processor
from pyrite.processors.chain import ChainProcessor


class PacketTasklet(ProcessorTasklet):
    __slots__ = ("_grouping", "_inlet", "_packet", "_partition")

    def __init__(
        self,
        processor: Processor,
        inlet: Inlet,
        edge: EdgePlan,
        *,
        by_partition: bool,
        vertex: str,
        label: str,
        outbox: Outbox,
        routes: Sequence[Route],
        halt: Halt,
        warn_slow: Callable[[str, float], None],
        on_finish: Sequence[Callable[[], None]],
    ) -> None:
        super().__init__(
            processor,
            vertex=vertex,
            label=label,
            index=0,
            inbound=[InboundEdge(edge, [])],
            outbox=outbox,
            routes=routes,
            halt=halt,
            warn_slow=warn_slow,
            on_finish=on_finish,
        )
        self._inlet = inlet
        self._at = self.inbound[0]
        self._grouping = (
            processor if by_partition and isinstance(processor, ChainProcessor) else None
        )
        self._partition: int | None = None
        self._packet: Packet | Done | None = None

    @property
    def is_quiet(self) -> bool:
        return super().is_quiet and not isinstance(self._packet, Packet)

    def _process(self) -> int:
        if not self.inbox:
            answer = self._take_packets()
            if not self.inbox:
                if answer == IDLE and self._has_try_process:
                    return self._try_process()
                return answer
        count = len(self.inbox)
        self._timed_process()
        return self._progress_if_taken(count)

    def _take_packets(self) -> int:
        """Fills the inbox with packets up to the limit of the pace. A grouping by partition gets
        packets of one partition at a time."""
        while len(self.inbox) < self.pace.limit:
            if self._packet is None:
                self._packet = self._inlet.poll()
            packet = self._packet
            if packet is None:
                return IDLE
            if isinstance(packet, Done):
                if not self.inbox:
                    self._step_to(self._complete_edge)
                return PROGRESS
            ends_groups = self._grouping is not None and packet.partition != self._partition
            if ends_groups and (self.inbox or not self._begin_partition(packet.partition)):
                return PROGRESS
            self.received += len(packet.items)
            self.inbox.extend(packet.items)
            self._packet = None
        return PROGRESS

    def _begin_partition(self, partition: int | None) -> bool:
        """Emits the groups of the previous partition. Returns False while groups are left to emit
        or the outbox is not empty; then the caller must try again."""
        if (
            self._partition is not None
            and self._grouping is not None
            and not self._grouping.emit_groups()
        ):
            return False
        self._partition = partition
        return not len(self.outbox)
