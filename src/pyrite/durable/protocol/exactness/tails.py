"""Whether the queue of a concurrent task has reached its tail, when it is spread over several
servers: all leaders are there, and nothing else is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass

from pyrite.durable.protocol.exactness.sentinels import End


@dataclass(frozen=True, slots=True)
class Leader:
    """The data of a leader's node: the sentinel, and where it was first read. A leader is always
    requeued on the server that it came from, else a server could be counted before the leader comes
    to it and another after the leader has left."""

    id: str
    server: int
    sequence: int

    def text(self) -> str:
        return json.dumps([self.id, self.server, self.sequence], separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Leader:
        return cls(*json.loads(text))


@dataclass(frozen=True, slots=True)
class Count:
    """What one server holds of a queue. `last` is the sequence of the last message that it has
    stored: a server that lags behind does not know of all messages yet."""

    pending: int
    in_flight: int
    last: int


class TailCheck:
    """Made with the leaders, before any server is counted. A leader that is elected later is then
    counted as a message and not as a leader, so the answer is no, and the peer checks again. The
    other way round, a segment could be counted in place of the leader that came after it."""

    def __init__(self, expected: Set[End], leaders: Mapping[End, Leader], *, servers: int) -> None:
        self._leaders = dict(leaders)
        self._has_all_leaders = set(leaders) == set(expected)
        self._led = Counter(leader.server for leader in leaders.values())
        self._uncounted = set(range(servers))
        self._nothing_else = True

    def counted(self, server: int, count: Count) -> None:
        self._uncounted.discard(server)
        believed = all(
            count.last >= leader.sequence
            for leader in self._leaders.values()
            if leader.server == server
        )
        if not believed or count.pending + count.in_flight != self._led[server]:
            self._nothing_else = False

    @property
    def only_leaders(self) -> bool:
        """Whether this is the tail. False as long as a server has not been counted."""
        return self._has_all_leaders and not self._uncounted and self._nothing_else
