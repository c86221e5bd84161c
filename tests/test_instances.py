"""An instance runs jobs, holds named maps and lists, and leaves nothing behind."""

from __future__ import annotations

import gc
import threading
from typing import Any

import cloudpickle
import pytest

import pyrite
from pyrite import DAG, AbstractProcessor, Instance, JobConfig, PyriteError, between
from pyrite import processors as p
from tests.engine.test_cancel_and_failure import Forever


def small(name: str = "out") -> DAG:
    dag = DAG()
    a = dag.vertex("a", p.read_items(range(10)))
    b = dag.vertex("b", p.map(lambda n: n + 1))
    c = dag.vertex("c", p.write_list(name))
    return dag.edge(between(a, b)).edge(between(b, c))


def test_the_word_count_of_the_readme(pyr_of_any_size: Instance, tmp_path: Any) -> None:
    (tmp_path / "book.txt").write_text("the whale and the sea\nThe whale\n" * 1000)
    dag = DAG()
    lines = dag.vertex("lines", p.read_files(f"{tmp_path}/*.txt"))
    words = dag.vertex("words", p.flat_map(lambda line: line.lower().split()))
    count = dag.vertex(
        "count", p.group_and_accumulate(key=lambda w: w, initial=0, accumulate=lambda n, w: n + 1)
    )
    total = dag.vertex(
        "total",
        p.group_and_accumulate(key=lambda kv: kv[0], initial=0, accumulate=lambda n, kv: n + kv[1]),
    )
    sink = dag.vertex("sink", p.write_map("counts"))
    dag.edge(between(lines, words))
    dag.edge(between(words, count).partitioned(key=lambda w: w))
    dag.edge(between(count, total).distributed().partitioned(key=lambda kv: kv[0]))
    dag.edge(between(total, sink))
    for _ in range(2):
        pyr_of_any_size.map("counts").clear()
        assert pyr_of_any_size.new_light_job(dag).execute().result(timeout=60) is None
        assert dict(pyr_of_any_size.map("counts")) == {
            "the": 3000,
            "whale": 2000,
            "and": 1000,
            "sea": 1000,
        }


def test_a_job_can_be_executed_many_times_and_pickled(pyr: Instance) -> None:
    job = pyr.new_light_job(small())
    job.execute().result(5)
    job.execute().result(5)
    restored = cloudpickle.loads(cloudpickle.dumps(job))
    with pytest.raises(PyriteError, match="belongs to no instance"):
        restored.execute()
    pyr.execute(restored).result(5)
    assert sorted(pyr.list("out")) == sorted(list(range(1, 11)) * 3)
    assert restored.id == job.id


def test_metrics_count_per_vertex_and_processor(pyr_of_any_size: Instance) -> None:
    class Pass(AbstractProcessor):
        def try_process_0(self, item: Any) -> None:
            self.emit(item)

    dag = DAG()
    source = dag.vertex("source", p.read_items(range(5000)), local_parallelism=2)
    odd = dag.vertex("odd", p.filter(lambda n: n % 2), local_parallelism=2)
    double = dag.vertex("double", p.flat_map(lambda n: [n, n]), local_parallelism=2)
    custom = dag.vertex("custom", Pass, local_parallelism=3)
    count = dag.vertex(
        "count",
        p.group_and_accumulate(lambda n: n % 10, 0, lambda a, n: a + 1),
        local_parallelism=1,
    )
    sink = dag.vertex("sink", p.write_map("m"), local_parallelism=1)
    for one, two in (
        (source, odd),
        (odd, double),
        (double, custom),
        (custom, count),
        (count, sink),
    ):
        dag.edge(between(one, two))
    execution = pyr_of_any_size.new_light_job(dag).execute()
    execution.result(10)
    metrics = execution.metrics()
    numbers = {name: (vertex["received"], vertex["emitted"]) for name, vertex in metrics.items()}
    assert numbers == {
        "source": (0, 5000),
        "odd": (5000, 2500),
        "double": (2500, 5000),
        "custom": (5000, 5000),
        "count": (5000, 5),
        "sink": (5, 0),
    }
    shares = [processor["received"] for processor in metrics["custom"]["processors"]]
    assert (len(shares), sum(shares)) == (3, 5000)
    assert min(shares) > 0
    assert metrics["odd"]["fused_with"] == ["source", "double"]
    assert all(
        vertex["busy_seconds"] > 0 and vertex["queue_fill"] == 0 for vertex in metrics.values()
    )


def test_light_jobs_lists_those_that_run(pyr: Instance) -> None:
    dag = DAG()
    dag.vertex("forever", Forever)
    executions = [pyr.new_light_job(dag).execute() for _ in range(2)]
    assert pyr.light_jobs() == executions
    for execution in executions:
        execution.cancel()
        execution.exception(5)
    assert pyr.light_jobs() == []


def test_ten_thousand_light_jobs_leave_no_thread_and_no_memory(pyr: Instance) -> None:
    dag = small()

    def run(times: int) -> tuple[int, int]:
        for _ in range(times):
            pyr.new_light_job(dag).execute().result(5)
            pyr.list("out").clear()
        gc.collect()
        return threading.active_count(), len(gc.get_objects())

    threads, objects = run(1000)
    threads_after, objects_after = run(9000)
    assert threads_after == threads
    assert objects_after < objects + 100


def test_a_change_of_the_dag_counts_at_the_next_execution(pyr: Instance) -> None:
    dag = small()
    job = pyr.new_light_job(dag)
    job.execute().result(5)
    d = dag.vertex("d", p.write_list("second"))
    dag.edge(pyrite.from_(dag["b"], 1).to(d))
    job.execute().result(5)
    assert (len(pyr.list("out")), len(pyr.list("second"))) == (20, 10)


def test_named_maps_and_lists_behave_like_dicts_and_lists(pyr: Instance) -> None:
    numbers = pyr.list("numbers")
    numbers.extend([3, 1, 2])
    numbers.insert(0, 9)
    del numbers[-1]
    numbers[1] = 4
    assert numbers == [9, 4, 1]
    assert numbers[1:] == [4, 1]
    assert pyr.list("numbers") is numbers
    capitals = pyr.map("capitals")
    capitals["FR"] = "Paris"
    capitals.update(DE="Berlin")
    del capitals["FR"]
    assert capitals == {"DE": "Berlin"}
    assert repr(capitals) == "Map('capitals', {'DE': 'Berlin'})"
    for _ in capitals:
        capitals["changed while iterated"] = True
    assert pyr.collections() == [
        ("map", "capitals", [("DE", "Berlin"), ("changed while iterated", True)]),
        ("list", "numbers", [9, 4, 1]),
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda pyr: pyrite.instance(cooperative_threads=0),
        lambda pyr: pyrite.instance(cooperative_threads="2"),  # type: ignore[arg-type]
        lambda pyr: pyrite.instance(collections="disk"),
        lambda pyr: pyr.new_job("dag"),
        lambda pyr: pyr.new_job(DAG(), {"name": "x"}),
        lambda pyr: JobConfig(name=""),
    ],
)
def test_bad_arguments_are_refused_with_a_sentence(pyr: Instance, make: Any) -> None:
    with pytest.raises(PyriteError, match="got "):
        make(pyr)


def test_a_light_job_takes_no_config(pyr: Instance) -> None:
    with pytest.raises(PyriteError, match="a light job takes no name"):
        pyr.new_light_job(small(), JobConfig(name="x"))  # type: ignore[arg-type]


def test_an_instance_can_be_closed_twice_and_from_a_callback() -> None:
    pyr = pyrite.instance()
    pyr.new_light_job(small()).execute().result(5)
    pyr.close()
    pyr.close()
