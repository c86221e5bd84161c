"""A DAG that cannot run is refused with a clear error. A DAG can be iterated, compared, pickled and
drawn."""

from __future__ import annotations

from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite import DAG, AbstractProcessor, InvalidDAG, PyriteError, Vertex, between, from_
from pyrite import processors as p


def dag_of(*names: str) -> tuple[DAG, list[Vertex]]:
    dag = DAG()
    return dag, [dag.vertex(name, p.noop()) for name in names]


def test_a_duplicate_vertex_name_is_refused() -> None:
    dag, _ = dag_of("a")
    with pytest.raises(InvalidDAG, match="already has a vertex 'a'"):
        dag.vertex("a", p.noop())


def test_a_vertex_that_is_in_no_dag_is_refused() -> None:
    dag, (a,) = dag_of("a")
    with pytest.raises(InvalidDAG, match="vertex 'b' of edge 'a -> b' is not in this DAG"):
        dag.edge(between(a, Vertex("b", p.noop())))


def test_a_vertex_of_another_dag_with_the_same_name_is_refused_as_such() -> None:
    dag, (a, _) = dag_of("a", "b")
    _, (other,) = dag_of("b")
    with pytest.raises(InvalidDAG, match="it only has the same name"):
        dag.edge(between(a, other))


def test_a_duplicate_outbound_ordinal_is_refused() -> None:
    dag, (a, b, c) = dag_of("a", "b", "c")
    dag.edge(between(a, b))
    with pytest.raises(InvalidDAG, match="'a' already has an outbound edge at ordinal 0"):
        dag.edge(from_(a).to(c))


def test_a_duplicate_inbound_ordinal_is_refused() -> None:
    dag, (a, b, c) = dag_of("a", "b", "c")
    dag.edge(between(a, c))
    with pytest.raises(InvalidDAG, match="'c' already has an inbound edge at ordinal 0"):
        dag.edge(from_(b).to(c))


def test_a_self_edge_is_refused() -> None:
    dag, (a,) = dag_of("a")
    with pytest.raises(InvalidDAG, match="from vertex 'a' to itself"):
        dag.edge(between(a, a))


def test_a_second_edge_between_two_vertices_is_refused() -> None:
    dag, (a, b) = dag_of("a", "b")
    dag.edge(between(a, b))
    with pytest.raises(InvalidDAG, match="'a' and 'b' already have an edge between them"):
        dag.edge(from_(a, 1).to(b, 1))


def test_an_edge_without_a_destination_is_refused() -> None:
    dag, (a,) = dag_of("a")
    with pytest.raises(InvalidDAG, match=r"the edge from 'a' .* has no destination"):
        dag.edge(from_(a))


def test_an_empty_dag_is_not_valid() -> None:
    with pytest.raises(InvalidDAG, match="empty"):
        DAG().validate()


@pytest.mark.parametrize(("direction", "ordinals"), [("inbound", (0, 1)), ("outbound", (1, 0))])
def test_a_gap_in_the_ordinals_is_not_valid(direction: str, ordinals: tuple[int, int]) -> None:
    dag, (a, b) = dag_of("a", "b")
    dag.edge(from_(a, ordinals[0]).to(b, ordinals[1]))
    vertex = "b" if direction == "inbound" else "a"
    with pytest.raises(
        InvalidDAG, match=f"vertex '{vertex}' has {direction} edges at ordinals 1, but none at 0"
    ):
        dag.validate()


def test_a_cycle_is_not_valid_and_the_message_prints_it() -> None:
    dag, (start, a, b, c, end) = dag_of("start", "a", "b", "c", "end")
    dag.edge(between(start, a)).edge(from_(a).to(b)).edge(from_(b).to(c)).edge(
        from_(c).to(a, 1)
    ).edge(from_(b, 1).to(end))
    with pytest.raises(InvalidDAG, match="a -> b -> c -> a"):
        dag.validate()
    with pytest.raises(InvalidDAG, match="a -> b -> c -> a"):
        list(dag)


def test_a_cycle_of_two_is_printed() -> None:
    dag, (a, b) = dag_of("a", "b")
    dag.edge(between(a, b)).edge(between(b, a))
    with pytest.raises(InvalidDAG, match="a -> b -> a"):
        dag.validate()


@pytest.mark.parametrize("parallelism", [0, -2, 1.5, True, "2", None])
def test_a_local_parallelism_that_is_neither_minus_one_nor_positive_is_refused(
    parallelism: Any,
) -> None:
    dag = DAG()
    with pytest.raises(InvalidDAG, match="local_parallelism of vertex 'a'"):
        dag.vertex("a", p.noop(), local_parallelism=parallelism)
    vertex = dag.vertex("a", p.noop())
    with pytest.raises(InvalidDAG, match="local_parallelism of vertex 'a'"):
        vertex.local_parallelism = parallelism


@pytest.mark.parametrize("supplier", [None, 3, "x", AbstractProcessor()])
def test_what_is_not_a_supplier_is_refused(supplier: Any) -> None:
    with pytest.raises(InvalidDAG, match="vertex 'a' needs a supplier"):
        DAG().vertex("a", supplier)


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_vertex_needs_a_name(name: Any) -> None:
    with pytest.raises(InvalidDAG, match="non-empty string"):
        DAG().vertex(name, p.noop())


def test_bad_edges_are_refused_with_their_name() -> None:
    _, (a, b) = dag_of("a", "b")
    for bad in (
        lambda: between(a, b).config(queue_size=0),
        lambda: between(a, b).config(high_water_mark="3"),  # type: ignore[arg-type]
        lambda: between(a, b).priority(1.5),  # type: ignore[arg-type]
        lambda: between(a, b).partitioned(key="word"),  # type: ignore[arg-type]
        lambda: between(a, b).isolated().distributed(),
        lambda: between(a, b).distributed().isolated(),
        lambda: between(a, b).to(a),
    ):
        with pytest.raises(InvalidDAG, match="'a -> b'"):
            bad()
    with pytest.raises(InvalidDAG, match="ordinal"):
        from_(a, -1)
    with pytest.raises(InvalidDAG, match=r"as dag\.vertex returns it"):
        between(a, "b")  # type: ignore[arg-type]
    with pytest.raises(InvalidDAG, match=r"dag\.edge takes an edge"):
        DAG().edge((a, b))  # type: ignore[arg-type]


def test_every_rejection_is_a_pyrite_error_and_a_value_error() -> None:
    assert issubclass(InvalidDAG, PyriteError)
    assert issubclass(InvalidDAG, ValueError)


def test_an_edge_has_the_defaults_of_the_design() -> None:
    _, (a, b) = dag_of("a", "b")
    edge = between(a, b)
    settings = edge.settings
    assert (edge.source_ordinal, edge.destination_ordinal) == (0, 0)
    assert (settings.distributed, settings.pattern, settings.priority, settings.buffered) == (
        False,
        "unicast",
        0,
        False,
    )
    assert (settings.queue_size, settings.packet_size_limit) == (1024, 16384)
    assert (settings.receive_window_multiplier, settings.high_water_mark) == (3, 2048)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20),
    st.permutations(range(10)),
)
def test_iteration_is_a_topological_order_of_all_vertices(
    pairs: list[tuple[int, int]], order: list[int]
) -> None:
    dag = DAG()
    vertices = {i: dag.vertex(str(i), p.noop()) for i in order}
    inbound, outbound = dict.fromkeys(range(10), 0), dict.fromkeys(range(10), 0)
    edges = {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}
    for a, b in edges:
        dag.edge(from_(vertices[a], outbound[a]).to(vertices[b], inbound[b]))
        outbound[a] += 1
        inbound[b] += 1
    dag.validate()
    position = {vertex.name: i for i, vertex in enumerate(dag)}
    assert len(position) == 10
    assert all(position[str(a)] < position[str(b)] for a, b in edges)


def word_count() -> DAG:
    dag = DAG()
    limit = 3
    words = dag.vertex("words", p.read_items(["a", "b"]), local_parallelism=2)
    long = dag.vertex("long", p.filter(lambda w: len(w) > limit))
    count = dag.vertex("count", p.group_and_accumulate(lambda w: w, 0, lambda n, w: n + 1))
    dag.edge(between(words, long)).edge(
        between(long, count).distributed().partitioned(key=lambda w: w[0]).priority(1)
    )
    return dag


def test_a_dag_equals_its_pickled_self_and_not_another() -> None:
    dag = word_count()
    restored = cloudpickle.loads(cloudpickle.dumps(dag))
    assert restored == dag
    assert word_count() == dag
    restored["long"].local_parallelism = 3
    assert restored != dag


def test_a_dag_with_another_function_is_not_equal() -> None:
    one, two = DAG(), DAG()
    one.vertex("a", p.map(lambda n: n + 1))
    two.vertex("a", p.map(lambda n: n + 2))
    assert one != two


def test_a_dag_prints_and_draws_itself() -> None:
    dag = word_count()
    assert repr(dag) == "DAG of 3 vertices and 2 edges: words, long, count"
    assert str(dag) == "words (x 2)\n│\nlong\n┃ distributed partitioned priority 1\ncount"
    assert (
        '"long" -> "count" [label="distributed partitioned priority 1", style=bold];'
        in dag.to_dot()
    )
    assert "v1 ==>|distributed partitioned priority 1| v2" in dag.to_mermaid()
    assert dag._repr_svg_().startswith("<svg")
    assert ">count</text>" in dag._repr_svg_()


def test_names_that_mean_something_to_a_drawing_language_are_escaped() -> None:
    dag = DAG()
    dag.vertex('a "b" <c>', p.noop())
    assert '\\"b\\"' in dag.to_dot()
    assert "<c>" not in dag.to_mermaid() + dag.to_svg()


def fork_and_rejoin(*, buffered: bool, absorbing: bool = False) -> DAG:
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(10_000)))
    first = dag.vertex("first", p.noop())
    second = dag.vertex("second", p.collect(list, list.append) if absorbing else p.noop())
    join = dag.vertex("join", p.noop())
    sink = dag.vertex("sink", p.write_list("out"))
    late = from_(second).to(join, 1).priority(1)
    dag.edge(from_(source, 0).to(first)).edge(from_(source, 1).to(second))
    dag.edge(from_(first).to(join, 0)).edge(late.buffered() if buffered else late).edge(
        between(join, sink)
    )
    return dag


def test_a_fork_that_rejoins_with_two_priorities_is_refused_by_the_name_of_the_edge_to_buffer() -> (
    None
):
    with pytest.raises(
        InvalidDAG, match=r"edge 'second -> join' .* would deadlock: vertex 'source' feeds both"
    ):
        fork_and_rejoin(buffered=False).validate()


def test_a_fork_that_rejoins_is_valid_with_a_buffered_edge_or_a_vertex_that_absorbs() -> None:
    fork_and_rejoin(buffered=True).validate()
    fork_and_rejoin(buffered=False, absorbing=True).validate()


def test_two_priorities_without_a_fork_are_valid() -> None:
    dag, (a, b, join) = dag_of("a", "b", "join")
    dag.edge(from_(a).to(join, 0)).edge(from_(b).to(join, 1).priority(1))
    dag.validate()


def test_what_is_derived_from_a_dag_is_made_again_after_a_change_only() -> None:
    dag, (a, b) = dag_of("a", "b")
    made: list[int] = []

    def derive() -> int:
        return dag.derived("x", lambda _: made.append(1) or len(made))

    assert (derive(), derive()) == (1, 1)
    edge = between(a, b)
    dag.edge(edge)
    assert (derive(), derive()) == (2, 2)
    edge.broadcast()
    assert derive() == 3
    a.local_parallelism = 4
    assert (derive(), derive()) == (4, 4)
