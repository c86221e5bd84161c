"""Steps that are tried again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyrite
from pyrite import (
    AbstractProcessor,
    Instance,
    InvalidDAG,
    JobCancelled,
    JobConfig,
    JobFailed,
    Pipeline,
    PyriteError,
    Retry,
)
from pyrite import processors as p
from pyrite.bad_records import Handler, Handling
from pyrite.exchange.serializable import check_serializable
from pyrite.processors.loop import write_loop
from tests.bad_records.light import bad_list, letters, run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"times": 0}, "times of Retry must be a whole number from 1 up; got 0"),
        ({"times": True}, "times of Retry"),
        ({"times": 1, "wait": -1}, "wait of Retry must be a number of seconds"),
        ({"times": 1, "wait": "1 s"}, "wait of Retry must be a number of seconds"),
        ({"times": 1, "on": ()}, "on of Retry must be a class of exceptions"),
        ({"times": 1, "on": (ValueError, "KeyError")}, "on of Retry must be"),
        ({"times": 1, "on": KeyboardInterrupt}, "on of Retry must be"),
    ],
)
def test_what_a_retry_takes(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidDAG, match=message):
        Retry(**arguments)


def test_a_step_refuses_another_retry_with_the_users_line() -> None:
    with pytest.raises(InvalidDAG, match=r"retry of 'filter' in test_retries.py line \d+ must be"):
        Pipeline().read_from([1]).filter(bool, retry=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "supplier", [p.read_items([1]), p.accumulate(0, lambda a, b: a), p.write_list("out")]
)
def test_sources_folds_and_sinks_refuse_a_retry(pyr: Instance, supplier: Any) -> None:
    dag = pyrite.DAG()
    dag.vertex("mine", supplier, retry=Retry(1))
    with pytest.raises(InvalidDAG, match=r"vertex 'mine'.* cannot have retry="):
        pyr.new_light_job(dag)


class Flaky:
    """Raises for each item as often as told, then returns it."""

    def __init__(self, failures: Callable[[int], int] = lambda n: 2) -> None:
        self.calls: Counter[int] = Counter()
        self._failures = failures

    def __call__(self, n: int) -> int:
        self.calls[n] += 1
        if self.calls[n] <= self._failures(n):
            raise ConnectionError(n)
        return n


@given(
    failures=st.lists(st.integers(0, 4), max_size=8),
    times=st.integers(1, 3),
    wait=st.sampled_from([0.0, 1.5]),
    kind=st.sampled_from(["map", "filter", "flat_map"]),
)
def test_the_loop_tries_again_and_keeps_the_order(
    failures: list[int], times: int, wait: float, kind: str
) -> None:
    flaky = Flaky(lambda n: failures[n])
    steps: Any = {
        "map": p.map(flaky),
        "filter": p.filter(lambda n: flaky(n) % 2),
        "flat_map": p.flat_map(lambda n: (flaky(n) for _ in range(2))),
    }
    handling = Handling(True, retry=Retry(times, wait=wait))
    bad: list[Any] = []
    now = [0.0]
    handler = Handler(kind, handling, bad, clock=lambda: now[0])
    loop = write_loop(
        [(kind, steps[kind].step)], emits=True, check_first=None, handled={0: handling}
    )
    out: list[int] = []
    items = list(range(len(failures)))
    for _ in loop.run(items, out, 1 << 30, [0], None, None, bad=[handler, None]):
        now[0] += 1.0
    good = [n for n in items if failures[n] <= times]
    if kind == "filter":
        assert out == [n for n in good if n % 2]
    else:
        assert out == [n for n in good for _ in range(2 if kind == "flat_map" else 1)]
    assert [letter.item for letter in bad] == [n for n in items if failures[n] > times]
    tries = sum(min(failures[n], times) for n in items)
    assert now[0] == tries * (2.0 if wait else 0.0) or kind == "flat_map"


def test_an_item_is_tried_again_until_it_is_done(pyr: Instance) -> None:
    flaky = Flaky()
    stage = Pipeline().read_from([1, 2, 3]).map(flaky, retry=Retry(2, wait=0.001))
    assert stage.collect() == [1, 2, 3]
    assert flaky.calls == {1: 3, 2: 3, 3: 3}


def test_after_the_last_try_the_job_fails_with_the_users_error(pyr: Instance) -> None:
    flaky = Flaky()
    with pytest.raises(JobFailed, match="ConnectionError: 1") as failed:
        Pipeline().read_from([1]).map(flaky, retry=Retry(1)).collect()
    assert (failed.value.vertex, failed.value.item) == ("map", 1)
    assert isinstance(failed.value.__cause__, ConnectionError)
    assert flaky.calls == {1: 2}


def test_after_the_last_try_the_item_is_a_bad_record(pyr: Instance) -> None:
    flaky = Flaky(lambda n: n)
    pipe = Pipeline()
    stage = pipe.read_from([0, 1, 2, 3]).map(flaky, retry=Retry(2), on_error=bad_list())
    stage.write_to(p.write_list("out"))
    counts = run(pyr, pipe)["map"]
    assert list(pyr.list("out")) == [0, 1, 2]
    assert [letter.item for letter in letters(pyr)] == [3]
    assert counts["dead_letters"] == 1


def test_other_errors_are_not_tried_again() -> None:
    calls = []

    def fail(n: int) -> int:
        calls.append(n)
        raise KeyError(n)

    skipped = Pipeline().read_from([1, 2])
    retry = Retry(5, on=(ConnectionError, TimeoutError))
    assert skipped.map(fail, retry=retry, on_error=pyrite.skip()).collect() == []
    assert calls == [1, 2]


def test_the_wait_may_depend_on_the_number_of_failures() -> None:
    seen: list[int] = []

    def wait(failures: int) -> float:
        seen.append(failures)
        return 0.0

    stage = Pipeline().read_from([1]).map(Flaky(lambda n: 3), retry=Retry(3, wait=wait))
    assert stage.collect() == [1]
    assert seen == [1, 2, 3]


def test_a_job_that_waits_holds_up_no_other_and_can_be_cancelled() -> None:
    with pyrite.instance(cooperative_threads=1) as pyr:
        pipe = Pipeline()
        waiting = pipe.read_from([1, 2]).map(Flaky(), retry=Retry(1, wait=3600))
        waiting.write_to(p.write_list("never"))
        execution = pyr.new_light_job(pipe).execute()
        other = Pipeline()
        other.read_from(range(10)).write_to(p.write_list("other"))
        run(pyr, other)
        assert len(pyr.list("other")) == 10
        assert not execution.done()
        execution.cancel()
        assert isinstance(execution.exception(10), JobCancelled)
        assert list(pyr.list("never")) == []


def test_items_that_were_done_before_go_on_while_one_waits() -> None:
    with pyrite.instance(cooperative_threads=1) as pyr:
        pipe = Pipeline()
        flaky = Flaky(lambda n: 9 * (n == 3))
        waiting = pipe.read_from([1, 2, 3, 4]).map(flaky, retry=Retry(1, wait=3600))
        arrived: list[int] = []
        both = threading.Event()

        def arrive(n: int) -> None:
            arrived.append(n)
            if n == 2:
                both.set()

        waiting.rebalance().inspect(arrive).write_to(p.noop())
        execution = pyr.new_light_job(pipe).execute()
        assert both.wait(10)
        assert arrived == [1, 2]
        execution.cancel()


class Emits(AbstractProcessor):
    calls: Counter[int] = Counter()

    def try_process_0(self, item: int) -> None:
        self.emit(("began", item))
        self.calls[item] += 1
        if self.calls[item] < 3:
            raise ConnectionError(item)
        self.emit(("ended", item))


def test_a_processor_of_ones_own_is_tried_again_from_its_beginning() -> None:
    stage = Pipeline().read_from([1, 2]).process(Emits, retry=Retry(2, wait=0.001))
    assert stage.collect() == [("began", 1), ("ended", 1), ("began", 2), ("ended", 2)]


def test_async_calls_are_tried_again_while_others_go_on() -> None:
    flaky = Flaky(lambda n: 2 if n == 0 else 0)
    ended: list[int] = []

    async def ask(n: int) -> int:
        answer = flaky(n)
        ended.append(n)
        return answer

    stage = Pipeline().read_from(range(10)).map(ask, retry=Retry(2, wait=0.05))
    assert stage.collect() == list(range(10))
    assert ended[-1] == 0


def test_async_calls_that_fail_are_bad_records(pyr: Instance) -> None:
    async def inverse(n: int) -> int:
        return 6 // n

    pipe = Pipeline()
    stage = pipe.read_from([1, 0, 2, 0]).map(inverse, on_error=bad_list())
    stage.write_to(p.write_list("out"))
    counts = run(pyr, pipe)["map"]
    assert list(pyr.list("out")) == [6, 3]
    assert [letter.item for letter in letters(pyr)] == [0, 0]
    assert (counts["received"], counts["emitted"], counts["dead_letters"]) == (4, 2, 2)
    assert "in inverse" in letters(pyr)[0].traceback


def test_calls_with_a_client_are_tried_again_and_then_bad_records() -> None:
    flaky = Flaky(lambda n: n)
    stage = (
        Pipeline()
        .read_from([0, 1, 2])
        .map_with(
            dict, lambda client, n: flaky(n), retry=Retry(1, wait=0.001), on_error=pyrite.skip()
        )
    )
    assert stage.collect() == [0, 1]

    def spread(client: dict[Any, Any], n: int) -> Iterator[int]:
        yield n
        yield 4 // n

    spread_out = (
        Pipeline().read_from([1, 0, 2]).flat_map_with(dict, spread, on_error=pyrite.skip(at_most=1))
    )
    assert spread_out.collect() == [1, 4, 2, 2]


def test_an_async_call_that_waits_ends_with_its_job() -> None:
    async def fail(n: int) -> int:
        raise ConnectionError(n)

    with pyrite.instance() as pyr:
        pipe = Pipeline()
        pipe.read_from([1]).map(fail, retry=Retry(1, wait=3600)).write_to(p.noop())
        execution = pyr.new_light_job(pipe).execute()
        execution.cancel()
        assert isinstance(execution.exception(10), JobCancelled)


def file_flaky(folder: Path) -> Callable[[int], int]:
    """Raises once for each item that is divisible by 3, in whatever process."""

    def act(n: int) -> int:
        marker = folder / f"{n}"
        if n % 3 == 0 and not marker.exists():
            marker.touch()
            raise ConnectionError(n)
        return n

    return act


@pytest.mark.parametrize("shuffles", [False, True])
def test_a_durable_job_tries_again(tmp_path: Path, shuffles: bool) -> None:
    pipe = Pipeline()
    stage = pipe.read_from(range(10))
    retry = Retry(1, wait=0.01)
    stage = stage.rebalance() if shuffles else stage
    stage = stage.map(file_flaky(tmp_path), retry=retry)
    (stage.rebalance() if shuffles else stage).write_to(p.write_list("out"))
    with pyrite.instance(durable=tmp_path / "jobs", peers=1) as pyr:
        pyr.new_durable_job(pipe, JobConfig(members=2)).execute().result(60)
        assert sorted(pyr.list("out")) == list(range(10))


def test_a_wait_that_cannot_be_pickled_is_named() -> None:
    lock = threading.Lock()
    pipe = Pipeline()
    stage = pipe.read_from([1]).map(str, retry=Retry(1, wait=lambda n: lock.acquire() or 0.0))
    stage.write_to(p.noop())
    with pytest.raises(PyriteError, match=r"retry of vertex 'map' \(added in .*lock"):
        check_serializable(pipe.to_dag())
