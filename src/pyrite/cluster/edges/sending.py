"""The sending end of a distributed edge: one tasklet for each edge and target member."""

from __future__ import annotations

from typing import Final, Protocol

from pyrite.cluster.edges.window import SendLimit, weight_of
from pyrite.engine.failure import Failed, Halt
from pyrite.engine.plan import EdgePlan
from pyrite.engine.queues import UNBOUNDED, Done, SpscQueue
from pyrite.engine.routing import RoutingFailed
from pyrite.engine.tasklets import DONE_NOW, IDLE, PROGRESS, Tasklet
from pyrite.exchange.groups import Groups, Packing
from pyrite.weights import BYTES_AT_ONCE, bytes_of
from pyrite.wire.messages import DoneMessage, Message, PacketMessage

MOST_UNSENT: Final = 4 << 20
"""With more bytes than this waiting to be sent to a member, its senders pause."""
PACKETS_PER_CALL: Final = 8


class To(Protocol):
    """The part of a connection that a sender uses."""

    @property
    def unsent(self) -> int: ...

    def send(self, message: Message) -> None: ...


class SenderTasklet(Tasklet):
    """Packs what processors emit for one member, and sends it up to the receiver's limit."""

    __slots__ = (
        "_edge",
        "_execution",
        "_finished",
        "_inputs",
        "_packing",
        "_producers",
        "_to",
        "_turn",
        "limit",
    )

    def __init__(
        self, execution: bytes, edge: EdgePlan, to: To, *, producers: int, halt: Halt
    ) -> None:
        super().__init__(halt)
        self._execution = execution
        self._edge = edge
        self._to = to
        self._producers = producers
        self._finished: list[int] = []
        """The producers that are done. They may run on other threads; appending is thread-safe."""
        self._inputs: list[tuple[int | None, SpscQueue]] = []
        self._turn = 0
        self._packing = Packing(edge)
        self.limit = SendLimit()

    def input(self, partition: int | None) -> SpscQueue:
        """A new queue for the items of one producer, for one partition or for any (None)."""
        settings = self._edge.settings
        queue = SpscQueue(UNBOUNDED if settings.buffered else settings.queue_size)
        self._inputs.append((partition, queue))
        return queue

    def finished(self, producer: int) -> None:
        """A producer has put its last item into its queues."""
        self._finished.append(producer)

    def call(self) -> int:
        if self.halt.is_set:
            return DONE_NOW
        try:
            return self._send()
        except RoutingFailed as error:
            self.halt.fail(
                Failed(error.error, vertex=self._edge.source, edge=error.edge, item=error.item)
            )
        except BaseException as error:
            self.halt.fail(Failed(error, vertex=self._edge.source, edge=self._edge.name))
        return DONE_NOW

    @property
    def is_woken(self) -> bool:
        return self._may_send

    @property
    def _may_send(self) -> bool:
        return self.limit.is_open and self._to.unsent <= MOST_UNSENT

    def _send(self) -> int:
        answer = IDLE
        for _ in range(PACKETS_PER_CALL):
            if not self._may_send:
                return answer
            # Checked before the queues are read: a producer finishes after its last item.
            all_finished = len(self._finished) == self._producers
            groups = self._gather()
            if groups:
                for payload, count in self._packing.packets(groups):
                    weight = weight_of(len(payload), count)
                    self._to.send(
                        PacketMessage(self._execution, self._edge.id, weight, count, payload)
                    )
                    self.limit.sent(weight)
                answer = PROGRESS
            elif all_finished:
                self._to.send(DoneMessage(self._execution, self._edge.id))
                return DONE_NOW
            else:
                return answer
        return answer

    def _gather(self) -> Groups:
        """Takes items for one packet from the queues. It starts at another queue each time."""
        room = self._packing.items_per_packet
        size = 0
        groups: Groups = []
        inputs = self._inputs
        self._turn += 1
        for i in range(len(inputs)):
            partition, queue = inputs[(self._turn + i) % len(inputs)]
            while room > 0 and (chunk := queue.poll(room)) is not None:
                if isinstance(chunk, Done):
                    continue
                size += bytes_of(chunk)
                room = 0 if size >= BYTES_AT_ONCE else room - len(chunk)
                if groups and groups[-1][0] == partition:
                    groups[-1] = (partition, groups[-1][1] + chunk)
                else:
                    groups.append((partition, chunk))
            if room <= 0:
                break
        return groups
