"""The interface between the engine and the network, or whatever else connects members.

A local edge is a set of queues inside one member. A distributed edge uses `Links`: each producer
has one `Outlet` per destination, and each member has one `Inlet` that receives the items of all
other members.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pyrite.engine.plan import EdgePlan
from pyrite.engine.queues import Done

if TYPE_CHECKING:
    from pyrite.engine.routing import Route, Spread


class Outlet(Protocol):
    """Takes the items of one producer. A local queue is an outlet, and so is a connection to
    another member."""

    def offer(self, items: list[Any]) -> int:
        """Takes items from the start of the list until there is no more room. Returns how many it
        took. The outlet keeps the list: the caller must not change it afterwards."""

    def room(self) -> int:
        """How many items `offer` would take now."""

    def finish(self) -> None:
        """Tells the outlet that this producer sends no more items."""


class Packet(NamedTuple):
    """Items of one edge that came from another member. On a partitioned edge they all belong to
    one partition; on other edges `partition` is None."""

    partition: int | None
    items: list[Any]


class Inlet(Protocol):
    """Gives the packets of one distributed edge that came from the other members."""

    def poll(self) -> Packet | Done | None:
        """Returns the next packet, None if there is none yet, or the done marker after the last
        packet of all other members."""


class Links(Protocol):
    """Connects a member to the other members during one execution."""

    def outlet(self, edge: EdgePlan, processor: int, member: int, partition: int | None) -> Outlet:
        """The outlet for items that a processor sends over an edge to another member. `partition`
        is None on unicast and broadcast edges."""

    def partitioned_route(
        self, edge: EdgePlan, processor: int, partition: Callable[[Any], int]
    ) -> Route | None:
        """A faster route for a partitioned edge whose items all leave the member. None if the
        links have none; then the engine uses outlets."""

    def spread(
        self, edge: EdgePlan, partition: Callable[[Any], int]
    ) -> Callable[[], Spread] | None:
        """Makes the loop that sorts many items of a partitioned edge by partition, if the links
        have a faster one than the route."""

    def done(self, edge: EdgePlan, processor: int) -> None:
        """Called when a processor has sent its last item over an edge, to any member."""

    def inlet(self, edge: EdgePlan) -> Inlet:
        """The inlet that receives the items of an edge."""


class NoLinks:
    """The links of a job with a single member. No edge may use them."""

    def outlet(self, edge: EdgePlan, processor: int, member: int, partition: int | None) -> Outlet:
        raise AssertionError(
            f"internal error: edge {edge.name} sends to member {member}, but the job has only one "
            "member; please report this"
        )

    def partitioned_route(
        self, edge: EdgePlan, processor: int, partition: Callable[[Any], int]
    ) -> Route | None:
        return None

    def spread(
        self, edge: EdgePlan, partition: Callable[[Any], int]
    ) -> Callable[[], Spread] | None:
        return None

    def done(self, edge: EdgePlan, processor: int) -> None:
        raise AssertionError(
            f"internal error: edge {edge.name} sends to other members, but the job has only one "
            "member; please report this"
        )

    def inlet(self, edge: EdgePlan) -> Inlet:
        raise AssertionError(
            f"internal error: edge {edge.name} receives from other members, but the job has only "
            "one member; please report this"
        )
