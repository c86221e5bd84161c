"""Steps in a row are fused only where this does not change the result."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pyrite import DAG, Instance, JobFailed, between
from pyrite import processors as p
from pyrite.engine.fusion import fuse
from pyrite.engine.plan import plan_topology
from pyrite.processors.loops.chain import StepSupplier


def labels(dag: DAG, *, members: int = 1, parallelism: int = 1) -> list[str]:
    topology = plan_topology(dag, member_count=members, default_parallelism=parallelism)
    return [
        stretch.label
        for stretch in fuse(topology, {vertex.name: vertex.supplier for vertex in dag.vertices})
    ]


def line(*steps: StepSupplier, edge: Any = lambda edge: edge, names: str = "abcdefg") -> DAG:
    dag = DAG()
    vertices = [dag.vertex(name, step) for name, step in zip(names, steps)]
    for one, two in itertools.pairwise(vertices):
        dag.edge(edge(between(one, two)))
    return dag


SOURCE, MAP, FOLD, SINK = (
    p.read_items([1, 2]),
    p.map(lambda n: n + 1),
    p.group_and_accumulate(lambda n: n, 0, lambda a, n: a + 1),
    p.write_list("out"),
)


def test_a_line_of_steps_is_one() -> None:
    assert labels(line(SOURCE, MAP, MAP, SINK)) == ["a + b + c + d"]


def test_a_fold_ends_a_stretch() -> None:
    assert labels(line(SOURCE, MAP, FOLD, MAP, SINK)) == ["a + b + c", "d + e"]


def test_unicast_side_by_side_is_fused_unless_a_fold_or_a_sink_would_show_it() -> None:
    assert labels(line(SOURCE, MAP, SINK), parallelism=3) == ["a + b", "c"]
    assert labels(line(SOURCE, MAP, FOLD), parallelism=3) == ["a + b", "c"]
    assert labels(line(SOURCE, MAP, FOLD, edge=lambda e: e.isolated()), parallelism=3) == [
        "a + b + c"
    ]


@pytest.mark.parametrize("pattern", ["broadcast", "partitioned", "all_to_one"])
def test_other_patterns_are_fused_only_between_single_processors(pattern: str) -> None:
    dag = line(SOURCE, MAP, MAP, edge=lambda e: getattr(e, pattern)())
    assert labels(dag) == ["a + b + c"]
    assert labels(dag, parallelism=2) == ["a", "b", "c"]


def test_a_distributed_edge_is_not_fused_with_more_than_one_member() -> None:
    dag = line(SOURCE, MAP, edge=lambda e: e.distributed())
    assert labels(dag, members=1) == ["a + b"]
    assert labels(dag, members=2) == ["a", "b"]


def test_vertices_of_different_parallelism_or_with_several_edges_are_not_fused() -> None:
    dag = line(SOURCE, MAP)
    dag["b"].local_parallelism = 2
    assert labels(dag) == ["a", "b"]


def run(pyr: Instance, dag: DAG) -> list[Any]:
    pyr.list("out").clear()
    pyr.new_light_job(dag).execute().result(10)
    return list(pyr.list("out"))


def test_a_flat_map_in_the_middle_is_flattened(pyr: Instance) -> None:
    dag = line(
        p.read_items([3, 0, 2]),
        p.flat_map(range),
        p.filter(lambda n: n),
        p.flat_map(lambda n: [n, -n]),
        SINK,
    )
    assert run(pyr, dag) == [1, -1, 2, -2, 1, -1]


def test_an_endless_flat_map_is_cut_off_by_a_cancel(pyr: Instance) -> None:
    import itertools

    dag = line(
        p.read_items([1]), p.flat_map(lambda n: itertools.count()), p.filter(lambda n: False), SINK
    )
    execution = pyr.new_light_job(dag).execute()
    execution.cancel()
    with pytest.raises(pyr_cancelled()):
        execution.result(5)


def pyr_cancelled() -> type[BaseException]:
    from pyrite import JobCancelled

    return JobCancelled


@pytest.mark.parametrize("share_the_key", [True, False])
@pytest.mark.parametrize(
    "fold",
    [FOLD, p.group_and_collect(lambda n: n, list, list.append), p.count_distinct(lambda n: n)],
)
def test_a_fused_partitioned_edge_refuses_bad_keys_like_any_other(
    pyr: Instance, share_the_key: bool, fold: StepSupplier
) -> None:
    def bad_key(n: int) -> Any:
        return None if n == 2 else n

    dag = DAG()
    source = dag.vertex("source", p.read_items([1, 2, 3]), local_parallelism=1)
    step = type(fold.step)
    fields = {name: getattr(fold.step, name) for name in fold.step.__dataclass_fields__}  # type: ignore[attr-defined]
    count = dag.vertex(
        "count", StepSupplier(step(**{**fields, "key": bad_key})), local_parallelism=1
    )
    dag.edge(
        between(source, count).partitioned(key=bad_key if share_the_key else (lambda n: bad_key(n)))
    )
    assert labels(dag) == ["source + count"]
    with pytest.raises(JobFailed, match="edge 'source -> count' is None") as failed:
        pyr.new_light_job(dag).execute().result(10)
    assert failed.value.item == 2


def test_a_fused_partitioned_edge_asks_the_users_partitioner(pyr: Instance) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items(["a"]))
    sink = dag.vertex("sink", SINK)
    dag.edge(between(source, sink).partitioned(partitioner=lambda key, count: count))
    with pytest.raises(JobFailed, match="partitioner"):
        pyr.new_light_job(dag).execute().result(10)


FAULTS: list[tuple[str, list[StepSupplier], str, Any]] = [
    (
        "map",
        [p.read_items([2, 1, 0]), p.map(lambda n: n + 1), p.map(lambda n: 1 // (n - 1)), SINK],
        "c",
        1,
    ),
    ("filter", [p.read_items([2, 0]), p.filter(lambda n: 1 // n), SINK], "b", 0),
    ("flat_map", [p.read_items([2, 0]), p.flat_map(lambda n: [1 // n]), SINK], "b", 0),
    (
        "flat_map's generator",
        [p.read_items([2, 0]), p.flat_map(lambda n: (1 // m for m in [n])), SINK],
        "b",
        0,
    ),
    (
        "key",
        [p.read_items([2, 0]), p.group_and_accumulate(lambda n: 1 // n, 0, lambda a, n: a), SINK],
        "b",
        0,
    ),
    (
        "accumulate",
        [p.read_items([2, 0]), p.group_and_accumulate(lambda n: 1, 0, lambda a, n: 1 // n), SINK],
        "b",
        0,
    ),
    ("collect", [p.read_items([2, 0]), p.collect(list, lambda c, n: 1 // n), SINK], "b", 0),
    (
        "finish",
        [
            p.read_items([2]),
            p.group_and_accumulate(lambda n: 1, 0, lambda a, n: a, lambda k, v: 1 // v),
            SINK,
        ],
        "b",
        (1, 0),
    ),
    ("source", [p.read_items(1 // n for n in [1, 0]), MAP, SINK], "a", None),
]


@pytest.mark.parametrize(
    ("name", "steps", "vertex", "item"), FAULTS, ids=[fault[0] for fault in FAULTS]
)
def test_an_error_in_a_fused_step_names_its_vertex_and_item(
    pyr: Instance, name: str, steps: list[StepSupplier], vertex: str, item: Any
) -> None:
    with pytest.raises(JobFailed) as failed:
        pyr.new_light_job(line(*steps)).execute().result(10)
    assert (failed.value.vertex, failed.value.item) == (vertex, item)
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    assert f"vertex '{vertex}'" in str(failed.value)
    traceback = failed.value.__cause__.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    assert traceback is not None
    assert traceback.tb_frame.f_code.co_filename == __file__


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([p.read_items([1, None])], "vertex 'a' emitted None"),
        (
            [p.read_items([1]), p.map(lambda n: None)],
            r"vertex 'b' emitted None, which <function .*test_fusion.py line \d+> returned",
        ),
        (
            [p.read_items([1]), p.flat_map(lambda n: [None])],
            r"vertex 'b' emitted None, which <function .*test_fusion.py line",
        ),
        (
            [p.read_items([1]), p.flat_map(lambda n: n)],
            r"return value of <function .* must be an iterable or a Traverser; got 1",
        ),
        ([p.read_items([1]), p.accumulate(None, lambda a, n: None)], "vertex 'b' emitted None"),
        ([p.read_items([[1]]), p.count_distinct(lambda n: n)], "vertex 'b'.*unhashable"),
    ],
)
def test_what_a_step_may_not_do_fails_with_a_sentence(
    pyr: Instance, steps: list[StepSupplier], message: str
) -> None:
    with pytest.raises(JobFailed, match=message):
        pyr.new_light_job(line(*steps, SINK)).execute().result(10)
