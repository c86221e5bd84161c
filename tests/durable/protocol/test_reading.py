"""Which edges a sequential part may read, and when they have ended."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyrite.durable.protocol.exactness.reading import Came, ended_by, has_ended, readable
from pyrite.durable.protocol.exactness.sentinels import End
from pyrite.durable.protocol.workflow import Edge, Task, Upstream, Workflow
from tests.durable.protocol.shapes import task

FIRST, SECOND = Edge("a-join", "a", 0), Edge("b-join", "b", 1)
JOIN = Task("join", "sequential", 2, (FIRST, SECOND))
WORKFLOW = Workflow((task("a", "concurrent", 1), task("b", "sequential", 2), JOIN))


def came(edge: Edge, servers: int) -> set[Came]:
    ups = WORKFLOW.upstream(edge)
    return {Came(edge.name, up, server) for up in ups for server in range(servers)}


def test_an_edge_has_ended_when_every_upstream_part_has_sealed_on_every_server() -> None:
    everything = came(SECOND, 2)
    assert len(everything) == 4
    assert has_ended(WORKFLOW, SECOND, everything, servers=2)
    for missing in everything:
        assert not has_ended(WORKFLOW, SECOND, everything - {missing}, servers=2)


def test_a_later_rank_is_not_read_before_the_earlier_one_has_ended() -> None:
    assert readable(WORKFLOW, JOIN, set(), servers=1) == (FIRST,)
    assert readable(WORKFLOW, JOIN, came(SECOND, 1), servers=1) == (FIRST,)
    assert readable(WORKFLOW, JOIN, came(FIRST, 1), servers=1) == (SECOND,)
    assert readable(WORKFLOW, JOIN, came(FIRST, 1) | came(SECOND, 1), servers=1) == ()


def test_edges_of_one_rank_are_read_together() -> None:
    both = Task("union", "sequential", 1, (Edge("a-union", "a"), Edge("b-union", "b")))
    workflow = Workflow((task("a", "concurrent", 1), task("b", "concurrent", 1), both))
    assert readable(workflow, both, set(), servers=1) == both.edges


@given(st.lists(st.sampled_from(sorted(came(SECOND, 2))), max_size=20))
def test_duplicates_end_nothing_twice(sentinels: list[Came]) -> None:
    seen: set[Came] = set()
    ended = 0
    for edge, upstream, server in sentinels:
        ended += ended_by(WORKFLOW, SECOND, seen, End(edge, upstream), server, servers=2)
        seen.add(Came(edge, upstream, server))
    assert ended == (len(set(sentinels)) == 4)


def test_a_sentinel_of_another_edge_ends_nothing() -> None:
    end = End(FIRST.name, Upstream("a", 0))
    assert ended_by(WORKFLOW, FIRST, set(), end, 0, servers=1)
    assert not ended_by(WORKFLOW, SECOND, set(), end, 0, servers=1)
