"""`JobFailed.replay` runs the vertex that failed on its item, wherever the job has run."""

from __future__ import annotations

import io
import pdb
import pickle
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrite import (
    DAG,
    AbstractProcessor,
    Instance,
    JobFailed,
    Pipeline,
    PyriteError,
    PyriteWarning,
    Stage,
    agg,
    between,
    instance,
    service,
    skip,
)
from pyrite import processors as p
from pyrite.engine.failure import Failed
from pyrite.engine.travelling import pack_failure, unpack_failure


def inverse(n: int) -> float:
    return 1 / (n - 3)


def failure(run: Callable[[], object]) -> JobFailed:
    with pytest.raises(JobFailed) as info:
        run()
    return info.value


def failed_dag(dag: DAG) -> JobFailed:
    with instance() as pyr:
        return failure(pyr.new_light_job(dag).execute().result)


def numbers() -> Stage[int]:
    return Pipeline().read_from(range(10))


def lazily(n: int) -> Iterator[float]:
    yield 1.0
    yield inverse(n)


async def inverse_later(n: int) -> float:
    return inverse(n)


class Inverts(AbstractProcessor):
    def try_process_0(self, item: int) -> None:
        self.emit(inverse(item))


STATELESS: dict[str, Callable[[], Stage[Any]]] = {
    "map": lambda: numbers().map(str).map(int).map(inverse).map(str),
    "filter": lambda: numbers().filter(inverse),
    "filter_map": lambda: numbers().filter_map(inverse),
    "flat_map": lambda: numbers().flat_map(lazily),
    "inspect": lambda: numbers().inspect(inverse),
    "split": lambda: numbers().split(inverse)[0],
    "split of two": lambda: Stage.union(*numbers().split(inverse)),
    "async map": lambda: numbers().map(inverse_later),
    "map_with": lambda: numbers().map_with(service(lambda: inverse), lambda fn, n: fn(n)),
    "skipped up to a limit": lambda: numbers().map(inverse, on_error=skip(at_most=0)),
    "processor": lambda: numbers().process(Inverts),
}


@pytest.mark.parametrize("kind", STATELESS)
def test_the_step_that_failed_raises_again(kind: str) -> None:
    error = failure(STATELESS[kind]().collect)
    assert error.item == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ZeroDivisionError) as info:
            error.replay()
    assert info.traceback[-1].name == "inverse"


@pytest.mark.parametrize("group", [True, False])
def test_a_fold_says_that_it_is_replayed_without_its_state(group: bool) -> None:
    stage = numbers()
    summed = agg.sum(inverse)
    folded: Stage[Any] = (
        stage.group_by(lambda n: 0).aggregate(summed) if group else stage.aggregate(summed)
    )
    error = failure(folded.collect)
    with (
        pytest.warns(
            PyriteWarning, match=r"'aggregate-combine' \(added in .* keeps a state, and is"
        ),
        pytest.raises(ZeroDivisionError),
    ):
        error.replay()


def test_a_fold_that_fails_because_of_its_state_returns_what_it_emits_with_a_warning() -> None:
    def once(state: list[int], n: int) -> list[int]:
        if state:
            raise ValueError("twice")
        return [n]

    folding = agg.Aggregate[int, list[int]](list, once, lambda a, b: a + b)
    error = failure(numbers().aggregate(folding).collect)
    with pytest.warns(PyriteWarning, match="") as warned:
        assert error.replay() == []
    texts = [str(each.message) for each in warned]
    assert "keeps a state" in texts[0]
    assert "did not raise this time" in texts[1]
    assert {each.filename for each in warned} == {__file__}


def test_the_finish_of_a_fold_is_replayed_on_the_result() -> None:
    finish = agg.Aggregate[int, float](int, lambda total, n: 3, lambda a, b: a, inverse)
    error = failure(numbers().group_by(lambda n: "k").aggregate(finish).collect)
    assert error.vertex == "aggregate"
    with pytest.raises(ZeroDivisionError):
        error.replay()


def test_the_key_of_an_edge_is_replayed() -> None:
    dag = DAG()
    a, b = dag.vertex("a", p.read_items([1, 3]), local_parallelism=2), dag.vertex("b", p.noop())
    dag.edge(between(a, b).partitioned(inverse))
    error = failed_dag(dag)
    assert (error.vertex, error.edge, error.item) == ("a", "'a -> b'", 3)
    with pytest.raises(ZeroDivisionError):
        error.replay()


class Second(AbstractProcessor):
    def try_process_1(self, item: int) -> None:
        inverse(item)


def test_the_item_comes_in_at_its_own_edge() -> None:
    pipe = Pipeline()
    error = failure(pipe.read_from([][:0]).process(Second, pipe.read_from([3])).collect)
    with pytest.raises(ZeroDivisionError):
        error.replay()


def test_what_does_not_raise_again_returns_what_it_emits() -> None:
    tries: list[int] = []

    def second_time(n: int) -> int:
        tries.append(n)
        if len(tries) == 1:
            raise ValueError("first")
        return n + 1

    error = failure(numbers().map(second_time).collect)
    with pytest.warns(PyriteWarning, match="did not raise this time"):
        assert error.replay() == [1]


def test_an_error_in_the_key_of_a_top_is_about_its_item() -> None:
    failed = failure(numbers().top(2, key=inverse).collect)
    assert (failed.vertex, failed.item) == ("top-combine", 3)
    with pytest.raises(ZeroDivisionError), pytest.warns(PyriteWarning, match="keeps a state"):
        failed.replay()


def test_an_error_in_the_key_of_a_sort_is_replayed_on_its_item() -> None:
    failed = failure(numbers().filter(bool).sort(key=inverse).collect)
    assert (failed.vertex, failed.item) == ("sort-combine", 3)
    with pytest.raises(ZeroDivisionError):
        failed.replay()


def test_the_debugger_stops_where_it_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.StringIO()

    class Debugger(pdb.Pdb):
        def __init__(self) -> None:
            super().__init__(stdin=io.StringIO("p n + 100\nq\n"), stdout=printed)

    monkeypatch.setattr(pdb, "Pdb", Debugger)
    with pytest.raises(ZeroDivisionError):
        failure(numbers().map(inverse).collect).replay(debugger=True)
    assert "103" in printed.getvalue()
    assert "-> return 1 / (n - 3)" in printed.getvalue()


# Where there is nothing to replay


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the Spark instance is shared by several tests, so its threads stay."""


def raises(error: type[Exception]) -> Iterator[int]:
    yield 1
    raise error


def test_a_source_has_no_item() -> None:
    error = failure(Pipeline().read_from(raises(KeyError)).collect)
    for each in (error, pickle.loads(pickle.dumps(error))):
        with pytest.raises(PyriteError, match="failed without an item"):
            each.replay()


def test_a_sink_does_not_write_again(tmp_path: Path) -> None:
    pipe = Pipeline()
    pipe.read_from([{"n": threading.Lock()}]).write_to(p.write_files(tmp_path / "o", "jsonl"))
    error = failure(pipe.run)
    with pytest.raises(PyriteError, match=r"'write_files' .* is a sink, which would write"):
        error.replay()


def test_a_job_that_failed_as_a_whole_has_nothing_to_replay() -> None:
    with pytest.raises(PyriteError, match="nothing to replay"):
        JobFailed("it failed").replay()
    with pytest.raises(PyriteError, match="outside of its vertices"):
        Failed(ValueError()).to_job_failed("job").replay()


# Errors that travel


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (bytes(2 << 20), "it has more than 1,048,576 bytes when pickled"),
        ([b"x"] * (1 << 20), "it has more than 1,048,576 bytes when pickled"),
        (threading.Lock(), "it cannot be pickled"),
    ],
    ids=["large", "many", "lock"],
)
def test_an_item_that_did_not_travel_is_said_so(item: Any, why: str) -> None:
    failed = unpack_failure(pack_failure(Failed(ValueError(), "v", item=item)))
    error = failed.to_job_failed("job")
    assert isinstance(error.item, str)
    with pytest.raises(PyriteError, match=rf"vertex 'v' .* did not travel .* because {why}"):
        error.replay()
    again = Failed.of(pickle.loads(pickle.dumps(error)))
    assert again.why_no_item == failed.why_no_item


def test_the_step_travels_with_the_failure_if_there_is_room() -> None:
    failed = Failed(ValueError(), "v", item=3, supplier=p.map(inverse))
    with pytest.raises(ZeroDivisionError):
        unpack_failure(pack_failure(failed)).to_job_failed("job").replay()
    small = unpack_failure(pack_failure(failed, most_bytes=len(pack_failure(failed))))
    assert small.item == 3
    with pytest.raises(PyriteError, match="replay it where the job was made"):
        small.to_job_failed("job").replay()


def test_a_step_with_a_large_model_does_not_travel() -> None:
    model = bytes(300 << 20)
    failed = Failed(ValueError(), "v", item=3, supplier=p.map(lambda n: model[n]))
    started = time.perf_counter()
    assert unpack_failure(pack_failure(failed)).supplier is None
    assert time.perf_counter() - started < 0.2  # it is not copied


@pytest.mark.parametrize("kind", STATELESS)
def test_an_error_can_be_pickled_and_replayed(kind: str) -> None:
    error = pickle.loads(pickle.dumps(failure(STATELESS[kind]().collect)))
    assert error.vertex is not None
    with pytest.raises(ZeroDivisionError):
        error.replay()


def test_an_error_with_an_item_that_cannot_be_pickled_can_be_pickled() -> None:
    lock = threading.Lock()
    error = failure(Pipeline().read_from([lock]).map(inverse).collect)  # type: ignore[arg-type]
    again = pickle.loads(pickle.dumps(error))
    with pytest.raises(PyriteError, match="cannot be pickled"):
        again.replay()


# Every way to run a job


def failing() -> Pipeline:
    pipe = Pipeline()
    stage = pipe.read_from(range(10)).map(str).rebalance(lambda text: text).map(int)
    stage.map(lambda n: inverse(n)).write_to(p.write_list("out"))
    return pipe


def is_replayed(error: JobFailed) -> None:
    assert (error.vertex, error.item) == ("map-3", 3)
    with pytest.raises(ZeroDivisionError) as info:
        error.replay()
    assert info.traceback[-1].name == "inverse"


def test_on_spark(local_spark: Instance) -> None:
    is_replayed(failure(local_spark.new_job(failing()).execute().result))


def test_on_members() -> None:
    with instance(members=2) as pyr:
        is_replayed(failure(pyr.new_light_job(failing()).execute().result))


def test_as_a_durable_job_also_from_another_process(tmp_path: Path) -> None:
    with instance(durable=tmp_path, peers=1) as pyr:
        execution = pyr.new_durable_job(failing()).execute()
        is_replayed(failure(execution.result))
        with instance(durable=tmp_path, peers=1) as other:
            elsewhere = other.job(execution.id)
            assert "map-3" not in elsewhere.job.dag
            is_replayed(failure(elsewhere.result))
