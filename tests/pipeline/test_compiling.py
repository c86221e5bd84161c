"""A pipeline compiles to the DAG that one would write by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from benchmarks.tpch import by_hand
from benchmarks.tpch.queries import QUERIES

from pyrite import (
    DAG,
    Instance,
    InvalidDAG,
    JobFailed,
    Pipeline,
    PyriteError,
    PyriteWarning,
    agg,
    between,
    skip,
)
from pyrite import processors as p
from pyrite.engine.fusion import fuse
from pyrite.engine.plan import plan_topology
from pyrite.exchange.sections import plan_sections


def after_fusion(dag: DAG) -> list[Any]:
    """What runs together, and over which edges items travel, without names."""
    topology = plan_topology(dag, member_count=2, default_parallelism=1)
    stretches = fuse(topology, {vertex.name: vertex.supplier for vertex in dag.vertices})
    number = {v.name: i for i, stretch in enumerate(stretches) for v in stretch.vertices}
    return [
        (
            len(stretch.vertices),
            [(number[e.source], e.settings.distributed, e.settings.pattern) for e in edges],
        )
        for stretch in stretches
        for edges in [stretch.inbound]
    ]


def test_plain_steps_are_the_dag_by_hand() -> None:
    def twice(n: int) -> int:
        return n * 2

    pipe = Pipeline()
    pipe.read_from([1, 2]).map(twice).filter(bool).write_to(p.write_list("out"))
    dag = DAG()
    a, b = dag.vertex("read_items", p.read_items([1, 2])), dag.vertex("map", p.map(twice))
    c, d = dag.vertex("filter", p.filter(bool)), dag.vertex("write_list", p.write_list("out"))
    dag.edge(between(a, b)).edge(between(b, c)).edge(between(c, d))
    assert pipe.to_dag() == dag


def test_a_word_count_is_the_dag_by_hand_after_fusion() -> None:
    pipe = Pipeline()
    lines = pipe.read_from(["a b"]).flat_map(str.split)
    lines.group_by(lambda word: word).count().write_to(p.write_map("counts"))
    dag = DAG()
    read, split = (
        dag.vertex("read", p.read_items(["a b"])),
        dag.vertex("split", p.flat_map(str.split)),
    )
    count = dag.vertex("count", p.group_and_accumulate(lambda w: w, 0, lambda n, w: n + 1))
    total = dag.vertex("total", p.group_and_accumulate(lambda t: t[0], 0, lambda n, t: n + t[1]))
    sink = dag.vertex("sink", p.write_map("counts"))
    dag.edge(between(read, split)).edge(between(split, count).isolated())
    dag.edge(between(count, total).distributed().partitioned(lambda t: t[0]))
    dag.edge(between(total, sink))
    assert after_fusion(pipe.to_dag()) == after_fusion(dag)


@pytest.mark.parametrize("query", by_hand.DAGS)
def test_a_tpc_h_query_has_the_exchanges_of_the_dag_by_hand(query: str, tmp_path: Path) -> None:
    pipeline, hand = QUERIES[query](tmp_path).to_dag(), by_hand.DAGS[query](tmp_path)
    assert exchanges(pipeline) == exchanges(hand)


def exchanges(dag: DAG) -> list[list[str]]:
    """The patterns of the edges that arrive at each section over an exchange."""
    topology = plan_topology(dag, member_count=2, default_parallelism=1)
    return [
        sorted(
            e.settings.pattern.value
            for v in section.vertices
            for e in v.inbound
            if e.is_distributed
        )
        for section in plan_sections(topology, {v.name: v.supplier for v in dag.vertices})
    ]


def test_a_count_of_the_items_themselves_is_counted_list_by_list() -> None:
    pipe = Pipeline()
    lines = pipe.read_from(["a b"]).flat_map(str.split)
    lines.group_by(lambda word: word).count().write_to(p.write_map("counts"))
    assert pipe.to_dag()["count-combine"].supplier.step.only_counts


def test_the_dag_is_cached_until_the_pipeline_changes() -> None:
    pipe = Pipeline()
    numbers = pipe.read_from([1])
    numbers.write_to(p.noop())
    dag = pipe.to_dag()
    numbers.map(str)
    assert pipe.to_dag() is dag
    numbers.map(str).write_to(p.noop())
    with pytest.raises(InvalidDAG, match="leads to no sink"):
        pipe.to_dag()


def test_names_are_unique_and_given_names_are_kept() -> None:
    pipe = Pipeline()
    stage = pipe.read_from([1]).filter(bool).filter(bool).map(str, name="filter-3").filter(bool)
    stage.write_to(p.noop())
    assert [vertex.name for vertex in pipe.to_dag()] == [
        *("read_items", "filter", "filter-2", "filter-3", "filter-4", "noop"),
    ]


def test_a_name_given_twice_is_refused_with_both_lines() -> None:
    pipe = Pipeline()
    pipe.read_from([1]).map(str, name="x").map(str, name="x").write_to(p.noop())
    with pytest.raises(InvalidDAG, match=r"'x' is given to two steps, in test_compiling.py line"):
        pipe.to_dag()


def test_a_stage_without_a_sink_is_refused_with_the_users_line() -> None:
    pipe = Pipeline()
    numbers = pipe.read_from([1])
    numbers.write_to(p.noop())
    line = after_this_line()
    numbers.map(str)
    with pytest.raises(InvalidDAG, match=rf"'map', added in test_compiling.py line {line}, leads"):
        pipe.to_dag()


def test_stages_of_two_pipelines_are_refused_with_the_users_line() -> None:
    one, two = Pipeline().read_from([1]), Pipeline().read_from([2])
    line = after_this_line()
    with pytest.raises(InvalidDAG, match=rf"line {line + 1} mixes stages of two pipelines"):
        one.union(two)


def test_a_stage_that_was_collected_needs_no_sink() -> None:
    pipe = Pipeline()
    numbers = pipe.read_from([1])
    assert numbers.map(str).collect() == ["1"]
    numbers.write_to(p.noop())
    assert len(pipe.to_dag()) == 2


@pytest.mark.parametrize("look", ["preview", "verify"])
def test_a_stage_that_was_only_looked_at_needs_no_sink(look: str) -> None:
    pipe = Pipeline()
    odd, even = pipe.read_from([1]).split(bool)
    getattr(odd.map(str), look)()
    even.write_to(p.noop())
    assert len(pipe.to_dag()) == 3


@pytest.mark.parametrize(
    "refused",
    [
        lambda s: s.map_batches("no function"),
        lambda s: s.map_batches(list, retry="no retry"),
        lambda s: s.map(str, on_error="skip"),
        lambda s: s.map(str, name=7),
        lambda s: s.map(str, parallelism=0),
        lambda s: s.top(1, name=7),
        lambda s: s.sort(key=str, on_error=skip(), name=7),
        lambda s: s.rebalance(key=str, on_error=skip(), name=7),
        lambda s: s.group_by(str).map_groups(str, retry="no retry"),
        lambda s: s.join(s, left=str, right=str, name=7),
        lambda s: s.process(7),
        lambda s: s.write_to({}),
        lambda s: s.write_to(p.noop(), parallelism=0),
        lambda s: s.pipeline.read_from([1], parallelism=0),
        lambda s: s.pipeline.read_from([1], name=7),
    ],
)
def test_a_refused_step_leaves_nothing_in_the_pipeline(refused: Any) -> None:
    pipe = Pipeline()
    numbers = pipe.read_from([1])
    with pytest.raises(InvalidDAG, match=r" in .*test_compiling.py line \d+"):
        refused(numbers)
    numbers.write_to(p.noop())
    assert len(pipe.to_dag()) == 2


def test_an_empty_pipeline_is_refused() -> None:
    with pytest.raises(InvalidDAG, match="pipeline is empty"):
        Pipeline().to_dag()


def test_a_fork_is_computed_once() -> None:
    calls: list[int] = []
    numbers = Pipeline().read_from([1, 2]).inspect(calls.append)
    assert sorted(numbers.map(str).union(numbers).collect(), key=str) == ["1", 1, "2", 2]
    assert calls == [1, 2]


def test_a_union_of_a_stage_with_itself_has_each_item_twice() -> None:
    numbers = Pipeline().read_from([1, 2])
    assert sorted(numbers.union(numbers, numbers).collect()) == [1, 1, 1, 2, 2, 2]


def test_what_is_no_source_no_sink_or_no_aggregate_is_refused() -> None:
    numbers = Pipeline().read_from([1])
    with pytest.raises(InvalidDAG, match="write_map is a sink"):
        Pipeline().read_from(p.write_map("x"))  # type: ignore[call-overload]
    with pytest.raises(InvalidDAG, match="or an iterable; got 7"):
        Pipeline().read_from(7)  # type: ignore[call-overload]
    with pytest.raises(InvalidDAG, match="read_map is a source"):
        numbers.write_to(p.read_map("x"))  # type: ignore[arg-type]
    with pytest.raises(InvalidDAG, match=r"needs aggregates, such as agg.count\(\)"):
        numbers.aggregate(agg.count)  # type: ignore[call-overload]


@pytest.mark.parametrize("method", ["collect", "preview", "verify"])
def test_what_is_no_instance_is_refused(method: str) -> None:
    pipe = Pipeline()
    numbers: Any = pipe.read_from([1])
    with pytest.raises(PyriteError, match=rf"on of {method}\(\) in test_compiling.py line \d+"):
        getattr(numbers, method)(on="spark")
    numbers.write_to(p.noop())
    with pytest.raises(PyriteError, match=r"on of run\(\) .* pyrite.instance\(\).*got 3"):
        pipe.run(on=3)  # type: ignore[arg-type]


def test_a_path_that_is_read_as_characters_gets_a_warning() -> None:
    with pytest.warns(PyriteWarning, match=r"'a/\*'\) .* characters .* read_from\(p.read_files"):
        assert Pipeline().read_from("a/*").collect() == ["a", "/", "*"]


def test_explain_says_what_is_fused_and_exchanged() -> None:
    pipe = Pipeline()
    pipe.read_from([1]).map(str).sort().map(int).write_to(p.noop())
    assert pipe.explain().splitlines() == [
        "stage 1 of 2",
        "1. read_items + map + sort-combine: one loop",
        "   combines before the exchange",
        "stage 2 of 2",
        "2. sort",
        "   exchange from sort-combine: distributed all-to-one",
        "3. map-2 + noop: one loop",
        "   from sort: isolated",
    ]


def after_this_line() -> int:
    """The number of the line after the caller's."""
    import sys

    return sys._getframe(1).f_lineno + 1


def _two_sinks() -> Pipeline:
    pipe = Pipeline()
    one = pipe.read_from([1])
    one.write_to(p.write_files("never-written"))
    one.write_to(p.write_files("never-written"))
    return pipe


def _wrong_edge() -> Pipeline:
    pipe = Pipeline()
    pipe.read_from([1]).process(p.noop(), edge=lambda edge: None).write_to(p.noop())  # type: ignore[arg-type, return-value]
    return pipe


def _no_processors() -> Pipeline:
    pipe = Pipeline()
    pipe.read_from([1]).map(str, parallelism=0).write_to(p.noop())
    return pipe


def new() -> Any:
    return Pipeline()


def one() -> Any:
    return Pipeline().read_from([1])


def wrong_name(name: Any = 7) -> Any:
    return p.read_map(name)


@pytest.mark.parametrize(
    "wrong",
    [
        _two_sinks,
        _wrong_edge,
        _no_processors,
        lambda: one().map(3),
        lambda: one().group_by(3),
        lambda: one().limit(-1),
        lambda: one().batch(0),
        lambda: one().aggregate(),
        lambda: one().aggregate(3),
        lambda: one().aggregate(agg.top("a")),  # type: ignore[arg-type]
        lambda: one().top(None),
        lambda: one().map(str, on_error="ignore"),
        lambda: one().union(7),
        lambda: one().write_to(7),
        lambda: new().read_from(7),
        lambda: new().read_from(wrong_name()),
    ],
)
def test_every_error_names_the_line_of_the_step(wrong: Any) -> None:
    with pytest.raises(InvalidDAG, match=r" in:? .*test_compiling.py line \d+"):
        wrong().run()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda s: s.group_by(str).map_groups(lambda key, items: None), "must be an iterable"),
        (lambda s: s.flat_map({"a": 1}.get), "must be an iterable"),
        (lambda s: s.map(lambda text: [text]).distinct(), "a key must be hashable"),
        (lambda s: s.map(lambda text: [text]).group_by(lambda x: x).count(), "must be hashable"),
    ],
)
def test_a_failure_shows_names_of_the_user_only(wrong: Any, words: str) -> None:
    with pytest.raises(JobFailed, match=words) as info:
        wrong(Pipeline().read_from(["a"])).collect()
    assert not re.search(r" at 0x|\b_[A-Z]|function None", str(info.value))


def test_an_invalid_dag_names_the_lines_of_its_vertices() -> None:
    dag = DAG()
    a, b = dag.vertex("a", p.noop()), dag.vertex("b", p.noop())
    dag.vertex("c", p.noop())
    dag.edge(between(a, b)).edge(between(b, a))
    with pytest.raises(InvalidDAG) as info:
        dag.validate()
    text = str(info.value)
    assert text.count("test_compiling.py line ") == 2
    assert "a -> b -> a" in text
    assert "'c'" not in text


def test_a_failure_of_a_dag_by_hand_names_the_line_of_the_vertex(pyr: Instance) -> None:
    dag = DAG()
    a, b = dag.vertex("a", p.read_items([0])), dag.vertex("b", p.map(lambda n: 1 / n))
    dag.edge(between(a, b))
    error = pyr.new_light_job(dag).execute().exception()
    assert re.search(r"\(the step was added in test_compiling.py line \d+\)$", str(error))
