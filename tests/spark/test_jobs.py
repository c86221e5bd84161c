"""A DAG gives the same result on Spark and as a light job; errors, metrics and named collections
reach the driver."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from pyrite import (
    DAG,
    AbstractProcessor,
    Instance,
    JobConfig,
    JobFailed,
    JobStatus,
    PyriteError,
    between,
    from_,
)
from pyrite import processors as p
from tests.dags import Picture, pictures
from tests.exchange.test_sections import line_with_a_way_around
from tests.test_dag import fork_and_rejoin


@given(picture=pictures(distributed=True))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_random_dag_gives_on_spark_what_the_reference_says(
    pyr: Instance, picture: Picture
) -> None:
    for end in picture.ends():
        pyr.list(f"out{end}").clear()
    pyr.new_job(picture.build(), JobConfig(members=3)).execute().result(60)
    assert {end: Counter(pyr.list(f"out{end}")) for end in picture.ends()} == picture.expected(3)


def word_count(lines: list[str], *, combine: bool = True) -> DAG:
    dag = DAG()
    source = dag.vertex("lines", p.read_items(lines))
    words = dag.vertex("words", p.flat_map(lambda line: line.lower().split()))
    pairs = dag.vertex("pairs", p.map(lambda w: (w, 1)))
    total = dag.vertex(
        "total", p.group_and_accumulate(lambda kv: kv[0], 0, lambda n, kv: n + kv[1])
    )
    sink = dag.vertex("sink", p.write_map("counts"))
    dag.edge(between(source, words))
    if combine:
        count = dag.vertex("count", p.group_and_accumulate(lambda w: w, 0, lambda n, w: n + 1))
        dag.edge(between(words, count).partitioned(key=lambda w: w))
        dag.edge(between(count, total).distributed().partitioned(key=lambda kv: kv[0]))
        dag.edge(between(dag.vertex("nothing", p.read_items([])), pairs))
    else:
        dag.edge(between(words, pairs))
        dag.edge(between(pairs, total).distributed().partitioned(key=lambda kv: kv[0]))
    dag.edge(between(total, sink))
    return dag


LINES = ["the whale and the sea", "The whale", *(f"word{n} word{n % 7}" for n in range(2000))]


@pytest.mark.parametrize("combine", [True, False])
@pytest.mark.parametrize("members", [1, 2, 5, None])
def test_the_word_count_is_the_same_as_light_and_on_spark(
    pyr: Instance, combine: bool, members: int | None
) -> None:
    dag = word_count(LINES, combine=combine)
    pyr.new_light_job(dag).execute().result(20)
    light = dict(pyr.map("counts"))
    pyr.map("counts").clear()
    execution = pyr.new_job(dag, JobConfig(name="word-count", members=members)).execute()
    assert execution.result(60) is None
    assert execution.status is JobStatus.COMPLETED
    assert (
        dict(pyr.map("counts"))
        == light
        == dict(Counter(word for line in LINES for word in line.lower().split()))
    )


def test_metrics_are_those_of_all_tasks(pyr: Instance) -> None:
    execution = pyr.new_job(word_count(LINES, combine=False), JobConfig(members=3)).execute()
    execution.result(60)
    words = sum(len(line.split()) for line in LINES)
    numbers = {
        name: (vertex["received"], vertex["emitted"])
        for name, vertex in execution.metrics().items()
    }
    distinct = len(pyr.map("counts"))
    assert numbers == {
        "lines": (0, len(LINES)),
        "words": (len(LINES), words),
        "pairs": (words, words),
        "total": (words, distinct),
        "sink": (distinct, 0),
    }


def test_items_maps_lists_and_iterators_are_read_once_in_all(pyr: Instance) -> None:
    pyr.list("in").extend(range(100))
    pyr.map("in").update({n: n for n in range(50)})
    for source, expected in (
        (p.read_list("in"), list(range(100))),
        (p.read_map("in"), [(n, n) for n in range(50)]),
        (p.read_items(iter(range(70))), list(range(70))),
        (p.read_items(set(range(60))), list(range(60))),
    ):
        pyr.list("out").clear()
        dag = DAG()
        dag.edge(
            between(
                dag.vertex("source", source, local_parallelism=2),
                dag.vertex("sink", p.write_list("out")),
            )
        )
        pyr.new_job(dag, JobConfig(members=3)).execute().result(60)
        assert sorted(pyr.list("out")) == expected


class Collect(AbstractProcessor):
    """A processor that records the order in which it reads its edges."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def try_process_any(self, ordinal: int, item: Any) -> None:
        if not self.seen or self.seen[-1] != ordinal:
            self.seen.append(ordinal)

    def complete(self) -> None:
        self.emit(tuple(self.seen))


def test_priorities_hold_over_exchanges(pyr: Instance) -> None:
    dag = DAG()
    collect = dag.vertex("collect", Collect)
    for ordinal, priority in enumerate((2, 0, 1)):
        source = dag.vertex(f"source{ordinal}", p.read_items(range(20_000)))
        dag.edge(from_(source).to(collect, ordinal).distributed().priority(priority))
    dag.edge(between(collect, dag.vertex("sink", p.write_list("out"))))
    pyr.new_job(dag, JobConfig(members=2)).execute().result(60)
    assert list(pyr.list("out")) == [(1, 2, 0)] * 2


def test_a_fork_that_rejoins_finishes_with_a_buffered_edge(pyr: Instance) -> None:
    pyr.new_job(fork_and_rejoin(buffered=True)).execute().result(60)
    assert len(pyr.list("out")) == 20_000


def test_nothing_is_computed_twice(pyr: Instance, tmp_path: Any) -> None:
    """The source is called once per item, although two vertices in different stages read it."""
    calls = tmp_path / "calls"

    def note(n: int) -> int:
        with open(calls, "a") as file:
            file.write(f"{n}\n")
        return n

    dag = DAG()
    source = dag.vertex("source", p.read_items(range(100)))
    noted = dag.vertex("noted", p.map(note))
    near = dag.vertex("near", p.noop())
    far = dag.vertex("far", p.noop())
    dag.edge(between(source, noted)).edge(from_(noted, 0).to(near).distributed().broadcast())
    dag.edge(from_(noted, 1).to(far, 0).distributed().all_to_one()).edge(
        from_(near).to(far, 1).distributed()
    )
    dag.edge(between(far, dag.vertex("sink", p.write_list("out"))))
    pyr.new_job(dag, JobConfig(members=3)).execute().result(60)
    assert sorted(map(int, calls.read_text().split())) == list(range(100))
    assert Counter(pyr.list("out")) == Counter(dict.fromkeys(range(100), 1 + 3))


def test_a_failing_function_gives_vertex_item_and_cause(pyr: Instance) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items([{"n": 1}, {"n": 0}]))
    bad = dag.vertex("bad", p.map(lambda item: 1 // item["n"]))
    dag.edge(between(source, bad).distributed())
    dag.edge(between(bad, dag.vertex("sink", p.write_list("out"))))
    with pytest.raises(
        JobFailed, match=r"job 'divide' failed in vertex 'bad'.*item \{'n': 0\}: ZeroDivisionError"
    ) as failed:
        pyr.new_job(dag, JobConfig(name="divide")).execute().result(60)
    assert (failed.value.vertex, failed.value.item) == ("bad", {"n": 0})
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    assert "test_jobs.py" in "".join(failed.value.__cause__.__notes__)
    assert list(pyr.list("out")) == []


def test_a_function_of_a_light_job_may_wait_for_a_job_on_spark(pyr: Instance) -> None:
    """It blocks its cooperative thread, but the job on Spark does not need that thread."""
    inner = pyr.new_job(word_count(LINES), JobConfig(members=1))
    dag = DAG()
    waits = dag.vertex("waits", p.map(lambda n: inner.execute().exception(60) or n))
    dag.edge(between(dag.vertex("source", p.read_items([1])), waits))
    pyr.new_light_job(dag).execute().result(60)
    assert len(pyr.map("counts")) > 0


class Unpicklable(Exception):
    def __init__(self, lock: Any) -> None:
        super().__init__("with a lock")
        self.lock = lock


def test_an_exception_and_an_item_that_cannot_travel_come_as_descriptions(pyr: Instance) -> None:
    def fail(item: Any) -> Any:
        raise Unpicklable(threading.Lock())

    dag = DAG()
    source = dag.vertex("source", p.read_items([1]))
    locks = dag.vertex("locks", p.map(lambda n: threading.Lock()))
    dag.edge(between(source, locks)).edge(between(locks, dag.vertex("bad", p.map(fail))))
    with pytest.raises(JobFailed, match="Unpicklable: with a lock") as failed:
        pyr.new_job(dag).execute().result(60)
    assert failed.value.vertex == "bad"
    assert "lock" in failed.value.item


def test_what_cannot_be_pickled_is_named_before_spark_is_touched() -> None:
    import pyrite

    lock = threading.Lock()
    dag = DAG()
    dag.vertex("locked", p.map(lambda n: lock.locked()))
    with (
        pyrite.instance(spark_master="spark://nowhere:1") as pyr,
        pytest.raises(
            PyriteError,
            match=r"vertex 'locked' .* cannot be sent to Spark's workers: <function .* uses the "
            r"variable `lock`, a _thread.lock, which cannot be pickled",
        ),
    ):
        pyr.new_job(dag).execute()


def test_reading_a_named_collection_in_a_task_is_refused_with_the_way_out(pyr: Instance) -> None:
    class Reads(AbstractProcessor):
        def init(self, context: Any) -> None:
            list(context.collections.list("in"))

    dag = DAG()
    dag.vertex("reads", Reads)
    with pytest.raises(JobFailed, match=r"use p.read_list\('in'\)") as failed:
        pyr.new_job(dag).execute().result(60)
    assert failed.value.vertex == "reads"


def adder(n: int) -> Any:
    return lambda i: i + n


def test_two_jobs_at_once_in_one_session(pyr: Instance) -> None:
    executions = []
    for n in range(2):
        dag = DAG()
        source = dag.vertex("source", p.read_items(range(1000)))
        add = dag.vertex("add", p.map(adder(n)))
        dag.edge(between(source, add).distributed()).edge(
            between(add, dag.vertex("sink", p.write_list(f"out {n}")))
        )
        executions.append(pyr.new_job(dag).execute())
    for n, execution in enumerate(executions):
        execution.result(60)
        assert sorted(pyr.list(f"out {n}")) == [i + n for i in range(1000)]


def test_a_join_with_a_step_on_its_large_side_finishes(pyr: Instance) -> None:
    """The rows of the large side must wait in Spark, not in the memory of the task, until the small
    side has been read."""
    dag = DAG()
    small, large = (
        dag.vertex("small", p.read_items(range(50_000))),
        dag.vertex("large", p.read_items(range(50_000))),
    )
    step, join = dag.vertex("step", p.map(lambda n: -n)), dag.vertex("join", Collect)
    dag.edge(from_(small).to(join, 0).distributed()).edge(between(large, step).distributed())
    dag.edge(from_(step).to(join, 1).priority(1)).edge(
        between(join, dag.vertex("sink", p.write_list("out")))
    )
    pyr.new_job(dag, JobConfig(members=2)).execute().result(60)
    assert list(pyr.list("out")) == [(0, 1)] * 2


def test_large_items_travel_in_small_packets(pyr: Instance) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items(range(200)))
    large = dag.vertex("large", p.map(lambda n: (n, bytes(1 << 20))))
    sizes = dag.vertex("sizes", p.map(lambda item: (item[0], len(item[1]))))
    dag.edge(between(source, large)).edge(between(large, sizes).distributed())
    dag.edge(between(sizes, dag.vertex("sink", p.write_list("out"))))
    pyr.new_job(dag, JobConfig(members=2)).execute().result(60)
    assert sorted(pyr.list("out")) == [(n, 1 << 20) for n in range(200)]


@pytest.mark.parametrize("partitioned", [True, False])
def test_an_item_that_cannot_cross_an_exchange_is_named_with_its_edge(
    pyr: Instance, partitioned: bool
) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items([1, 2]))
    locks = dag.vertex("locks", p.map(lambda n: (n, threading.Lock() if n == 2 else n)))
    edge = between(locks, dag.vertex("after", p.noop())).distributed()
    dag.edge(between(source, locks)).edge(
        edge.partitioned(key=lambda pair: pair[0]) if partitioned else edge
    )
    with pytest.raises(JobFailed, match="cannot pickle") as failed:
        pyr.new_job(dag, JobConfig(members=2)).execute().result(60)
    assert (failed.value.vertex, failed.value.edge) == ("locks", "'locks -> after'")
    assert "lock" in str(failed.value.item)


def test_an_exception_that_only_the_workers_know_still_ends_the_job(pyr: Instance) -> None:
    def fail(n: int) -> int:
        import sys
        import types

        module = types.ModuleType("known_to_the_worker_only")
        sys.modules["known_to_the_worker_only"] = module
        module.Unknown = type("Unknown", (Exception,), {"__module__": "known_to_the_worker_only"})  # type: ignore[attr-defined]
        raise module.Unknown("who am I")

    dag = DAG()
    dag.edge(between(dag.vertex("source", p.read_items([7])), dag.vertex("bad", p.map(fail))))
    with pytest.raises(JobFailed, match="Unknown: who am I") as failed:
        pyr.new_job(dag).execute().result(60)
    assert (failed.value.vertex, str(failed.value.item)) == ("bad", "7")


def test_a_second_spark_in_one_process_is_refused(pyr: Instance) -> None:
    import pyrite

    pyr.spark()
    with (
        pyrite.instance() as other,
        pytest.raises(PyriteError, match="already has a Spark session"),
    ):
        other.spark()
    with pyrite.instance(spark=pyr.spark()) as sharing:
        sharing.new_job(word_count(LINES[:2])).execute().result(60)
    assert pyr.spark().range(3).count() == 3  # a session that was given is left running


def test_a_commit_that_fails_changes_no_collection(pyr: Instance, tmp_path: Any) -> None:
    (tmp_path / "out" / "part-00000.txt").mkdir(parents=True)
    dag = DAG()
    source = dag.vertex("source", p.read_items([1]))
    dag.edge(from_(source, 0).to(dag.vertex("file", p.write_files(tmp_path / "out"))))
    dag.edge(from_(source, 1).to(dag.vertex("list", p.write_list("out"))))
    with pytest.raises(
        JobFailed,
        match=r"vertex 'file' would have to replace .*/out/part-00000.txt', which no job has",
    ):
        pyr.new_job(dag, JobConfig(members=1)).execute().result(60)
    assert (tmp_path / "out" / "part-00000.txt").is_dir()
    assert list(pyr.list("out")) == []


def test_nan_is_one_key_on_spark_as_in_a_light_job(pyr: Instance) -> None:
    dag = DAG()
    read = dag.vertex("read", p.read_items([float("nan") for _ in range(10)] + [1.0, 1]))
    count = dag.vertex("count", p.group_and_accumulate(lambda x: x, 0, lambda n, x: n + 1))
    sink = dag.vertex("sink", p.write_map("counts"))
    dag.edge(between(read, count).distributed().partitioned(key=lambda x: x))
    dag.edge(between(count, sink))
    for _ in range(2):  # the second run replaces the first one's entry
        pyr.new_job(dag, JobConfig(members=3)).execute().result(60)
    assert len(pyr.map("counts")) == 2
    assert pyr.map("counts")[float("nan")] == 10


def test_rows_that_skip_stages_do_not_pass_through_them_and_are_made_once(
    pyr: Instance, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dag = line_with_a_way_around()
    calls = tmp_path / "calls"

    def noted(item: int) -> int:
        with open(calls, "a") as file:
            file.write(f"{item}\n")
        return item

    source, last = dag.vertices[0], dag.vertices[-1]
    ends = dag.vertex("note", p.map(noted)), dag.vertex("sink", p.write_list("out"))
    dag.edge(from_(source, 2).to(ends[0])).edge(between(last, ends[1]))
    pyr.new_job(dag, JobConfig(members=2)).execute().result(60)
    assert sorted(pyr.list("out")) == sorted([*range(100), *range(100)])
    assert sorted(map(int, calls.read_text().split())) == list(range(100))
    assert "twice" not in caplog.text
