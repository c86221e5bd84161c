"""Where items come in to a member and where they go out: the one interface between the engine and
whatever joins members.

A local edge has queues at both ends, within the member. A distributed edge goes on over `Links`:
one `Outlet` for each place that items may leave to, and one `Inlet` that the items of all other
members arrive at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pyrite.engine.plan import EdgePlan
from pyrite.engine.queues import Done

if TYPE_CHECKING:
    from pyrite.engine.routing import Route, Spread


class Outlet(Protocol):
    """Takes items. A local queue is one; a link to another member has others."""

    def offer(self, items: list[Any]) -> int:
        """Takes as many of the items as there is room for, from the first on; returns how many. The
        list is then the outlet's."""

    def room(self) -> int:
        """How many items it would take now."""

    def finish(self) -> None:
        """There will be no more items from this producer."""


class Packet(NamedTuple):
    """Items of one edge that came from another member: on a partitioned edge all of one partition,
    else of no particular one."""

    partition: int | None
    items: list[Any]


class Inlet(Protocol):
    """Gives the packets of one distributed edge that came from the other members."""

    def poll(self) -> Packet | Done | None:
        """The next packet; the done marker once all other members are done; None when there is
        nothing yet."""


class Links(Protocol):
    """What joins a member to the others, for one execution."""

    def outlet(self, edge: EdgePlan, processor: int, member: int, partition: int | None) -> Outlet:
        """Where a processor puts items of an edge for another member: those of one partition, or of
        none (unicast, broadcast)."""

    def partitioned_route(
        self, edge: EdgePlan, processor: int, partition: Callable[[Any], int]
    ) -> Route | None:
        """A way of its own for the items of a partitioned edge that all leave, if the links have a
        better one than outlets."""

    def spread(
        self, edge: EdgePlan, partition: Callable[[Any], int]
    ) -> Callable[[], Spread] | None:
        """Makes the loop that sorts many items of a partitioned edge by partition, if the links
        have a faster one than the route."""

    def done(self, edge: EdgePlan, processor: int) -> None:
        """A processor has put its last item on an edge, for whichever member."""

    def inlet(self, edge: EdgePlan) -> Inlet:
        """Where the items of an edge come in."""


class NoLinks:
    """The links of a member that is alone."""

    def outlet(self, edge: EdgePlan, processor: int, member: int, partition: int | None) -> Outlet:
        raise AssertionError(
            f"edge {edge.name} leads to member {member}, but there is only one member"
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
            f"edge {edge.name} leads to other members, but there is only one member"
        )

    def inlet(self, edge: EdgePlan) -> Inlet:
        raise AssertionError(
            f"edge {edge.name} waits for other members, but there is only one member"
        )
