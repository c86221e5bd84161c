"""Whether the queue of a concurrent task has reached its tail, when it is spread over several
servers.

The order of reading matters: first the nodes of the leaders, then the servers. A leader that comes
in between is counted as a message and not as a leader, so the answer is no, and the peer asks
again. The other way round, a segment could be counted that is the leader's twin in number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass

from pyrite.durable.protocol.exactness.sentinels import End


@dataclass(frozen=True, slots=True)
class Leader:
    """The data of a leader's node: the sentinel, and where it was first read. A leader is always
    requeued on the same server."""

    id: str
    server: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Count:
    """What one server holds of a queue. `last` is the sequence of the last message that it has
    stored: a server that lags behind may not know of all messages yet."""

    pending: int
    in_flight: int
    last: int


def only_leaders(
    expected: Set[End], leaders: Mapping[End, Leader], counts: Mapping[int, Count], *, servers: int
) -> bool:
    """Whether all leaders are there, and nothing else is."""
    if set(leaders) != set(expected) or set(counts) != set(range(servers)):
        return False
    if any(counts[leader.server].last < leader.sequence for leader in leaders.values()):
        return False
    led = Counter(leader.server for leader in leaders.values())
    return all(count.pending + count.in_flight == led[server] for server, count in counts.items())
