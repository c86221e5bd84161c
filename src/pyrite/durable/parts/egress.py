"""What a part sends: items for other tasks, packed into messages, and reports to the completion.
Nothing of it is visible before a commit takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from pyrite.columns.packing.item_pickling import dumps
from pyrite.durable.parts.pairs import Halves, PairsRoute
from pyrite.durable.parts.told import Added, Told
from pyrite.durable.planning.tasks import PlannedJob, PlannedTask, edge_name
from pyrite.durable.protocol.workflow import COMPLETION, Part
from pyrite.durable.queues.queues import Message, Outgoing
from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import Route
from pyrite.errors import PyriteError
from pyrite.exchange.groups import Packing
from pyrite.functions import message_of
from pyrite.weights import BYTES_AT_ONCE, bytes_of

MESSAGE_BYTES: Final = 256 << 10
"""About how many bytes a message has, if there are items enough."""
WAY: Final = "of a durable job"
MANY_TOLD: Final = 64


class CannotSend(PyriteError):
    """What a part tells the completion of its job does not fit into a message."""


class Egress:
    """Collects what the processors of a part emit, by edge and receiving part."""

    def __init__(self, job: str, planned: PlannedJob, task: PlannedTask, most_bytes: int) -> None:
        self._job = job
        self._task = task
        self._ways = {edge.id: Way(edge, planned, job, most_bytes) for edge in task.outbound}
        self._most_bytes = most_bytes
        self._told: list[Told] = []
        self._many_told = 1
        self._messages: list[Outgoing] = []
        self.size = 0
        """The bytes of the messages that wait."""

    def way(self, edge: EdgePlan) -> Way:
        return self._ways[edge.id]

    def tell(self, thing: Told) -> None:
        """Adds something for the completion of the job."""
        self._told.append(thing)

    def forget_told(self) -> None:
        """What processors have added in `init`, if an earlier run of the part has told it."""
        self._told = []

    def settle(self) -> None:
        """Makes messages of what is enough for one."""
        for way in self._ways.values():
            self._add(way.messages(all_of_it=False))
        if len(self._told) >= self._many_told:
            self._add_told()

    def take(self) -> list[Outgoing]:
        """All messages, also those that are not full."""
        for way in self._ways.values():
            self._add(way.messages(all_of_it=True))
        if self._told:
            self._add_told()
        messages, self._messages, self.size = self._messages, [], 0
        return messages

    def _add_told(self) -> None:
        told, self._told = self._told, []
        to, edge = Part(self._job, COMPLETION, 0), self._task.to_completion
        bodies = list(self._bodies(told))
        self._add([Outgoing(to, Message(edge, body)) for body in bodies])
        # As many as those before would have needed for a message: values may be huge.
        per_message = MESSAGE_BYTES * len(told) // sum(map(len, bodies))
        self._many_told = min(max(1, per_message), MANY_TOLD)

    def _bodies(self, told: list[Told]) -> Iterator[bytes]:
        try:
            body = dumps(told, _sample_of(told))
        except Exception as error:
            if len(told) > 1:
                for each in told:
                    yield from self._bodies([each])
                return
            raise CannotSend(
                f"{told[0]} cannot be pickled ({message_of(error)}); a durable job keeps it in a"
                " queue until the job completes"
            ) from error
        if len(body) <= self._most_bytes:
            yield body
            return
        halves = (
            (told[: len(told) // 2], told[len(told) // 2 :]) if len(told) > 1 else told[0].halves()
        )
        if halves is None:
            raise CannotSend(
                f"{told[0]} has {len(body)} bytes, but a message can have at most"
                f" {self._most_bytes}; write smaller values"
            )
        for half in halves:
            yield from self._bodies(half)

    def _add(self, messages: list[Outgoing]) -> None:
        self._messages += messages
        self.size += sum(len(each.message.body) for each in messages)


class Way:
    """The items of one edge, by the part that they go to. Their order is kept for each producer and
    part."""

    def __init__(self, edge: EdgePlan, planned: PlannedJob, job: str, most_bytes: int) -> None:
        self._edge = edge
        self._name = edge_name(edge)
        self._topology = planned.topology
        reader = planned.task_of[edge.destination]
        self._is_concurrent = reader.kind == "concurrent"
        self._parts = [
            Part(job, reader.name, member)
            for member in range(1 if self._is_concurrent else self._topology.member_count)
        ]
        self._needs_partitions = self._topology.parallelism_of(edge.destination) > 1
        limit = min(MESSAGE_BYTES, most_bytes // 2)
        self._packing = Packing(edge, limit=limit, largest=most_bytes, way=WAY)
        self._groups: dict[int, dict[int | None, list[Any]]] = {}
        self._counts: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        """The bytes of the batches of rows that wait for each part."""
        self._halves: Halves | None = None

    def add(self, member: int, partition: int | None, items: list[Any]) -> None:
        to = 0 if self._is_concurrent else member
        key = partition if self._needs_partitions else None
        groups = self._groups.get(to)
        if groups is None:
            groups = self._groups[to] = {}
        group = groups.get(key)
        if group is None:
            groups[key] = items  # the outlet keeps the list
        else:
            group += items
        self._counts[to] = self._counts.get(to, 0) + len(items)
        if size := bytes_of(items):
            self._sizes[to] = self._sizes.get(to, 0) + size

    def partitioned_route(self, partition: Callable[[Any], int], member: int) -> Route | None:
        """A faster route for a partitioned edge, unless the reader must know the partitions."""
        if self._needs_partitions:
            return None
        topology = self._topology
        places = [
            0
            if self._is_concurrent
            else topology.member_of(number)
            if self._edge.is_distributed
            else member
            for number in range(topology.partition_count)
        ]
        if self._halves is None:
            self._halves = Halves(places)
        return PairsRoute(
            self._edge,
            partition,
            places,
            self._halves,
            lambda place, items: self.add(place, None, items),
        )

    def messages(self, *, all_of_it: bool) -> list[Outgoing]:
        made: list[Outgoing] = []
        if self._halves is not None:
            for to, firsts in enumerate(self._halves.firsts):
                if firsts and (
                    all_of_it
                    or to in self._counts  # before what came after the last pair
                    or len(firsts) >= self._packing.items_per_packet
                ):
                    packets = self._packing.pairs(*self._halves.take(to))
                    made += (self._message(to, payload) for payload, _ in packets)
        for to, count in list(self._counts.items()):
            size = self._sizes.get(to, 0)
            is_enough = size >= BYTES_AT_ONCE if size else count >= self._packing.items_per_packet
            if all_of_it or is_enough:
                groups = list(self._groups.pop(to).items())
                del self._counts[to]
                self._sizes.pop(to, None)
                packets = self._packing.packets(groups)
                made += (self._message(to, payload) for payload, _ in packets)
        return made

    def _message(self, to: int, payload: bytes) -> Outgoing:
        return Outgoing(self._parts[to], Message(self._name, payload))


def _sample_of(told: list[Told]) -> Any:
    """What of it may hold batches of rows."""
    return next((each.collected.contents for each in told if isinstance(each, Added)), told[0])
