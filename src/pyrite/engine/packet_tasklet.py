"""A tasklet whose processor reads the packets of its distributed edges directly, without a queue.
It is used where a single processor receives all packets of these edges.

If the packets are sorted by partition, a grouping or a join emits and frees what it holds of each
partition as soon as that partition has ended. All edges of a join are read at the same time: the
packets of a partition, in the order of the edges, then those of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from pyrite.boxes import Outbox
from pyrite.engine.ends import Inlet, Packet
from pyrite.engine.failure import Halt
from pyrite.engine.plan import EdgePlan
from pyrite.engine.queues import DONE, Done
from pyrite.engine.routing import Route
from pyrite.engine.tasklets import IDLE, PROGRESS, InboundEdge, ProcessorTasklet
from pyrite.processor import Processor
from pyrite.weights import is_batch


class ByPartition(Protocol):
    """A processor whose partitions do not depend on each other."""

    def end_partition(self) -> bool:
        """Emits what is left of a partition, and frees it. Returns False if the outbox is full;
        then it is called again."""


class PacketTasklet(ProcessorTasklet):
    __slots__ = ("_edge", "_inlets", "_packet", "_partition", "_partitions")

    def __init__(
        self,
        processor: Processor,
        inlets: Sequence[tuple[EdgePlan, Inlet]],
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
        """`by_partition` says that the packets are sorted by partition and the processor is
        ByPartition. With several inlets it must be true."""
        inbound = [InboundEdge(edge, []) for edge, _ in inlets]
        super().__init__(
            processor,
            vertex=vertex,
            label=label,
            index=0,
            inbound=inbound,
            outbox=outbox,
            routes=routes,
            halt=halt,
            warn_slow=warn_slow,
            on_finish=on_finish,
        )
        self._inlets = [(edge, inlet) for edge, (_, inlet) in zip(inbound, inlets)]
        """The inlets that have not ended."""
        self._at = inbound[0]
        self._partitions = cast(ByPartition, processor) if by_partition else None
        self._partition: int | None = None
        self._packet: Packet | Done | None = None
        self._edge = inbound[0]
        """The edge of the packet."""

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
        """Fills the inbox with packets of one edge up to the limit of the pace. By partition, they
        are of one partition, too."""
        while len(self.inbox) < self.pace.limit:
            if self._packet is None:
                self._packet = self._poll()
            packet = self._packet
            if packet is None:
                return IDLE
            if isinstance(packet, Done):
                if not self.inbox:
                    self._at = self._group[0]
                    self._step_to(self._complete_edge)
                return PROGRESS
            if self.inbox and self._edge is not self._at:
                return PROGRESS
            ends_partition = self._partitions is not None and packet.partition != self._partition
            if ends_partition and (self.inbox or not self._begin_partition(packet.partition)):
                return PROGRESS
            self._edge.note(packet.items)
            self.inbox.extend(packet.items)
            self._at = self._edge
            self._packet = None
            if packet.items and is_batch(packet.items[0]):
                break  # one packet of batches is enough at a time
        return PROGRESS

    def _poll(self) -> Packet | Done | None:
        """The next packet of any edge, or the done marker when all edges have ended."""
        for end in list(self._inlets):
            self._edge, inlet = end
            packet = inlet.poll()
            if isinstance(packet, Packet):
                return packet
            if packet is not None:
                self._inlets.remove(end)
        return None if self._inlets else DONE

    def _begin_partition(self, partition: int | None) -> bool:
        """Ends the previous partition. Returns False while something is left to emit or the outbox
        is not empty; then the caller must try again."""
        if (
            self._partition is not None
            and self._partitions is not None
            and not self._partitions.end_partition()
        ):
            return False
        self._partition = partition
        return not len(self.outbox)
