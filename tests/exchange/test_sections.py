"""Planning of sections, without Spark: which vertices share a section, and in which order it reads
its edges."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from pyrite import DAG, Pipeline, between, from_
from pyrite import processors as p
from pyrite.engine.plan import plan_topology
from pyrite.exchange.sections import Section, Skip, plan_sections, skips_of
from tests.dags import Picture, pictures


def sections_of(dag: DAG, members: int = 2) -> tuple[Section, ...]:
    topology = plan_topology(dag, member_count=members, default_parallelism=1)
    return plan_sections(topology, {vertex.name: vertex.supplier for vertex in dag.vertices})


def labels(dag: DAG, members: int = 2) -> list[str]:
    return [section.label for section in sections_of(dag, members)]


def test_a_dag_without_distributed_edges_is_one_section() -> None:
    dag = DAG()
    a, b = dag.vertex("a", p.read_items([1])), dag.vertex("b", p.noop())
    dag.edge(between(a, b))
    assert labels(dag) == ["a + b"]


def test_a_distributed_edge_cuts_unless_there_is_one_member() -> None:
    dag = DAG()
    a, b = dag.vertex("a", p.read_items([1])), dag.vertex("b", p.noop())
    dag.edge(between(a, b).distributed())
    assert labels(dag) == ["a", "b"]
    assert labels(dag, members=1) == ["a + b"]


def test_a_source_stands_with_what_it_feeds_over_a_local_edge() -> None:
    dag = DAG()
    prices, orders, enrich = (
        dag.vertex("prices", p.read_items([1])),
        dag.vertex("orders", p.read_items([1])),
        dag.vertex("e", p.noop()),
    )
    dag.edge(from_(prices).to(enrich, 0).distributed().broadcast().priority(-1)).edge(
        from_(orders).to(enrich, 1)
    )
    assert labels(dag) == ["prices", "orders + e"]


def test_a_local_edge_around_an_exchange_is_cut_too() -> None:
    dag = DAG()
    a, b, c = (dag.vertex(name, p.read_items([1]) if name == "a" else p.noop()) for name in "abc")
    dag.edge(from_(a, 0).to(b).distributed()).edge(from_(b).to(c, 0).distributed()).edge(
        from_(a, 1).to(c, 1)
    )
    first, _, last = sections_of(dag)
    assert (first.label, last.label) == ("a", "c")
    assert set(last.ranks) == {1, 2}


def test_edges_are_read_in_the_order_of_their_priorities_and_of_what_these_wait_for() -> None:
    dag = DAG()
    s1, s2, s3 = (dag.vertex(f"s{i}", p.read_items([1])) for i in range(3))
    x, y = dag.vertex("x", p.noop()), dag.vertex("y", p.noop())
    dag.edge(from_(s1).to(x).distributed().priority(7))  # the only edge to x: 7 has no effect
    dag.edge(from_(x).to(y, 0))
    dag.edge(from_(s2).to(y, 1).distributed().priority(3))  # waits for x, and so for the first
    dag.edge(from_(s3).to(y, 2).distributed().priority(5))
    _, last = sections_of(dag)
    assert dict(last.ranks) == {0: 0, 2: 1, 3: 2}
    assert last.sort_columns == ("rank",)


def test_an_edge_waits_for_what_comes_first_further_down_its_way() -> None:
    dag = DAG()
    small, large = dag.vertex("small", p.read_items([1])), dag.vertex("large", p.read_items([1]))
    step, join = dag.vertex("step", p.noop()), dag.vertex("join", p.noop())
    dag.edge(from_(small).to(join, 0).distributed()).edge(between(large, step).distributed())
    dag.edge(from_(step).to(join, 1).priority(1))
    _, last = sections_of(dag)
    assert dict(last.ranks) == {0: 0, 1: 1}


def grouping(edge: Any, parallelism: int = 1) -> Section:
    dag = DAG()
    source = dag.vertex("source", p.read_items([1]))
    count = dag.vertex(
        "count",
        p.group_and_accumulate(lambda n: n % 5, 0, lambda a, n: a + 1),
        local_parallelism=parallelism,
    )
    dag.edge(edge(between(source, count).distributed()))
    return sections_of(dag)[-1]


def test_a_grouping_by_the_edges_own_key_is_read_partition_by_partition() -> None:
    assert grouping(lambda e: e.partitioned(key=lambda n: n % 5)).sort_columns == ("partition",)
    # With another key, the items of a group may be in several partitions.
    assert grouping(lambda e: e.partitioned(key=lambda n: n % 7)).sort_columns == ()
    assert grouping(lambda e: e.partitioned(key=lambda n: n % 5), parallelism=2).sort_columns == ()


def both_sides(method: str, **options: Any) -> Section:
    """The last section of a pipeline that joins two sources."""
    pipe = Pipeline()
    one, other = pipe.read_from([1]), pipe.read_from([1])
    getattr(one, method)(other, left=len, right=len, **options).write_to(p.write_list("out"))
    return sections_of(pipe.to_dag())[-1]


def test_both_sides_of_a_join_are_read_partition_by_partition_the_right_first() -> None:
    section = both_sides("join")
    right, left = section.vertices[0].inbound
    assert (right.source, left.source) == ("join-right", "join-left")
    assert section.ranks[right.id] < section.ranks[left.id]  # for whoever reads whole edges
    assert section.turns[right.id] == section.turns[left.id]
    assert right.id < left.id
    assert section.sort_columns == ("partition", "edge")


def test_a_co_group_is_read_partition_by_partition() -> None:
    assert both_sides("co_group").sort_columns == ("partition", "edge")
    assert both_sides("co_group", parallelism=2).sort_columns == ()


def test_a_join_waits_for_the_small_side_of_a_join_behind_it() -> None:
    pipe = Pipeline()
    one, other, small = (pipe.read_from([str(n)]) for n in range(3))
    joined = one.join(other, left=len, right=len, name="large")
    last = joined.join(small, left=str, right=len, broadcast=True, name="small")
    last.write_to(p.write_list("out"))
    section = sections_of(pipe.to_dag())[-1]
    edges = {edge.source: edge.id for v in section.vertices for edge in v.inbound}
    first, right, left = (
        section.turns[edges[name]] for name in ("small-right", "large-right", "large-left")
    )
    assert first < right == left
    assert section.sort_columns == ("rank", "partition", "edge")


@given(pictures(distributed=True))
def test_every_edge_leads_to_its_own_section_or_a_later_one(picture: Picture) -> None:
    sections = sections_of(picture.build())
    section_of = {vertex.name: section.index for section in sections for vertex in section.vertices}
    for section in sections:
        assert section.vertices
        for vertex in section.vertices:
            for edge in vertex.inbound:
                gap = section.index - section_of[edge.source]
                assert gap >= (1 if edge.is_distributed else 0)
                assert (edge.id in section.ranks) == (gap > 0)


def line_with_a_way_around() -> DAG:
    """a -> b -> c -> d by distributed edges, and a -> d besides."""
    dag = DAG()
    a = dag.vertex("a", p.read_items(range(100)))
    b, c, d = (dag.vertex(name, p.noop()) for name in "bcd")
    dag.edge(from_(a, 0).to(b).distributed()).edge(between(b, c).distributed())
    return dag.edge(from_(c).to(d, 0).distributed()).edge(from_(a, 1).to(d, 1).distributed())


def test_an_edge_that_skips_sections_is_known() -> None:
    assert skips_of(sections_of(line_with_a_way_around())) == [Skip(0, 3, frozenset([3]))]


@given(pictures(distributed=True))
def test_skipping_edges_are_those_that_do_not_lead_to_the_next_section(picture: Picture) -> None:
    sections = sections_of(picture.build())
    section_of = {v.name: section.index for section in sections for v in section.vertices}
    edges = [e for section in sections for v in section.vertices for e in v.outbound]
    expected = {e.id for e in edges if section_of[e.source] + 1 < section_of[e.destination]}
    assert {edge for skip in skips_of(sections) for edge in skip.edges} == expected
