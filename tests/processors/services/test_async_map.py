"""map with an async function, as a light job, against an HTTP server."""

from __future__ import annotations

import asyncio
import functools
import gc
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from pyrite import (
    DAG,
    AbstractProcessor,
    Execution,
    Instance,
    InvalidDAG,
    JobCancelled,
    JobFailed,
    Pipeline,
    SupplierContext,
    between,
)
from pyrite import processors as p
from pyrite.collections import MemoryCollections
from pyrite.processors.services.caller import Caller
from pyrite.processors.services.calls import Calls
from pyrite.processors.services.window import Call
from pyrite.testing import verify_processor
from tests.http_server import HttpServer
from tests.services import answer_of


async def get(url: str) -> Any:
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        return await answer_of(session, url)


def start(pyr: Instance, items: Any, step: Any, **vertex: Any) -> Execution:
    dag = DAG()
    source = dag.vertex("source", p.read_items(items), local_parallelism=1)
    calls = dag.vertex("calls", step, **vertex)
    dag.edge(between(source, calls))
    dag.edge(between(calls, dag.vertex("sink", p.write_list("out"))))
    return pyr.new_light_job(dag).execute()


def test_results_keep_the_order_of_the_items(server: HttpServer) -> None:
    urls = [f"{server.url}/double/{n}?delay={0.05 if n % 10 == 0 else 0}" for n in range(100)]
    assert Pipeline().read_from(urls).map(get).collect() == [2 * n for n in range(100)]
    assert server.most_at_once > 1


def test_the_order_of_a_sort_is_kept() -> None:
    async def jittered(n: int) -> int:
        await asyncio.sleep(0.001 * (n % 3))
        return n

    stage = Pipeline().read_from([5, 3, 9, 1, 7, 2]).sort().map(jittered, parallelism=3)
    assert stage.collect() == [1, 2, 3, 5, 7, 9]


def test_a_map_at_the_end_of_a_dag_drops_its_results(pyr: Instance) -> None:
    called: list[int] = []

    async def call(n: int) -> bool:
        called.append(n)
        return True

    dag = DAG()
    calls = dag.vertex("calls", p.map_async(call, in_flight=3))
    dag.edge(between(dag.vertex("source", p.read_items(range(50))), calls))
    execution = pyr.new_light_job(dag).execute()
    execution.result(20)
    assert called == list(range(50))
    assert execution.metrics()["calls"]["received"] == 50


def test_no_more_than_in_flight_are_awaited(pyr: Instance, server: HttpServer) -> None:
    urls = [f"{server.url}/double/{n}?held=1" for n in range(100)]
    execution = start(pyr, urls, p.map_async(get, in_flight=7))
    server.wait_for(7)
    server.release()
    execution.result(20)
    assert server.most_at_once == 7
    assert list(pyr.list("out")) == [2 * n for n in range(100)]


def test_the_processors_of_a_member_share_the_limit(pyr: Instance, server: HttpServer) -> None:
    urls = [f"{server.url}/double/{n}?held=1" for n in range(100)]
    execution = start(pyr, urls, p.map_async(get, in_flight=5), local_parallelism=3)
    server.wait_for(5)
    server.release()
    execution.result(20)
    assert server.most_at_once == 5
    assert sorted(pyr.list("out")) == [2 * n for n in range(100)]


def test_sixteen_are_in_flight_unless_told_otherwise(pyr: Instance, server: HttpServer) -> None:
    execution = start(pyr, [f"{server.url}/double/1?held=1"] * 40, p.map_async(get))
    server.wait_for(16)
    server.release()
    execution.result(20)
    assert server.most_at_once == 16


class Getter:
    async def method(self, n: int) -> int:
        return 2 * n

    async def __call__(self, n: int) -> int:
        return 2 * n


class Inherits(Getter):
    pass


async def added(m: int, n: int) -> int:
    return m + n


FUNCTIONS: dict[str, Callable[[int], Awaitable[int]]] = {
    "method": Getter().method,
    "callable object": Getter(),
    "inherited call": Inherits(),
    "partial": functools.partial(added, 1),
    "partial of a callable object": functools.partial(Getter()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_kinds_of_async_functions_are_awaited(name: str) -> None:
    assert Pipeline().read_from([1]).map(FUNCTIONS[name]).collect() == [2]


def test_what_a_lambda_returns_is_awaited_if_in_flight_is_given() -> None:
    stage = Pipeline().read_from([1, 2]).map(lambda n: added(1, n), in_flight=2)
    assert stage.collect() == [2, 3]


def test_a_plain_map_refuses_coroutines() -> None:
    stage = Pipeline().read_from([1, 2]).map(lambda n: added(1, n), name="sums")
    with pytest.raises(JobFailed, match=r"'sums' emitted a coroutine.*in_flight="):
        stage.collect()


@pytest.mark.parametrize("method", ["filter", "filter_map", "flat_map", "inspect", "group_by"])
def test_other_steps_refuse_async_functions(method: str) -> None:
    stage = Pipeline().read_from([1])
    with pytest.raises(
        InvalidDAG, match=r"<function get, test_async_map.py line .* is async; await"
    ):
        getattr(stage, method)(get)


def test_in_flight_must_be_positive() -> None:
    with pytest.raises(InvalidDAG, match=r"in_flight of map_async.*from 1 up; got 0"):
        p.map_async(get, in_flight=0)


def test_an_error_names_the_vertex_and_the_item(pyr: Instance, server: HttpServer) -> None:
    urls = [f"{server.url}/double/{n}?status={500 if n == 60 else 200}" for n in range(100)]
    error = start(pyr, urls, p.map_async(get)).exception(20)
    assert isinstance(error, JobFailed)
    assert (error.vertex, error.item) == ("calls", urls[60])
    assert isinstance(error.__cause__, aiohttp.ClientResponseError)
    assert "in answer_of" in "".join(traceback.format_exception(error.__cause__))


def test_an_error_cancels_the_other_calls_and_waits_for_them(pyr: Instance) -> None:
    ended: list[int] = []

    async def call(n: int) -> int:
        try:
            if n == 3:
                raise ValueError(n)
            await asyncio.Event().wait()
        finally:
            ended.append(n)
        return n

    error = start(pyr, range(100), p.map_async(call, in_flight=5)).exception(20)
    assert isinstance(error, JobFailed)
    assert error.item == 3
    assert sorted(ended) == [0, 1, 2, 3, 4]


def test_a_cancel_of_the_job_cancels_its_calls(pyr: Instance, server: HttpServer) -> None:
    execution = start(pyr, [f"{server.url}/double/1?held=1"] * 40, p.map_async(get))
    server.wait_for(16)
    execution.cancel()
    assert isinstance(execution.exception(20), JobCancelled)
    server.wait_for(0)
    assert server.answered == 0


def test_a_call_that_waits_for_another_is_cancelled_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    begun = threading.Event()

    async def call(n: int) -> int:
        begun.set()
        await asyncio.Event().wait()
        return n

    caller = Caller(Calls(call, None, in_flight=1, spreads=False))
    caller.open(SupplierContext(**member_fields))
    first, second = Call(1, lambda call: None), Call(2, lambda call: None)
    caller.start([first, second])
    assert begun.wait(20)
    caller.cancel([second])
    caller.cancel([first])
    caller.close(None)
    del first, second
    gc.collect()
    assert [str(each.message) for each in recwarn] == []


member_fields: dict[str, Any] = {
    "vertex_name": "calls",
    "local_parallelism": 1,
    "member_count": 1,
    "job_id": "job",
    "execution_id": "execution",
    "collections": MemoryCollections(),
    "member_index": 0,
}


async def cancelled(n: int) -> int:
    raise asyncio.CancelledError


async def timed_out(n: int) -> int:
    async with asyncio.timeout(0):
        await asyncio.Event().wait()
    return n


async def exits(n: int) -> int:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("call", "cause"),
    [(cancelled, "CancelledError"), (timed_out, "TimeoutError"), (exits, "SystemE")],
)
def test_errors_that_asyncio_uses_itself_fail_the_job(pyr: Instance, call: Any, cause: str) -> None:
    error = start(pyr, [7, 8], p.map_async(call)).exception(20)
    assert isinstance(error, JobFailed)
    assert (error.vertex, error.item) == ("calls", 7)
    assert cause in str(error)


async def nothing(n: int) -> None:
    return None


def test_none_is_refused_with_the_function_that_returned_it(pyr: Instance) -> None:
    error = start(pyr, [7], p.map_async(nothing)).exception(20)
    assert isinstance(error, JobFailed)
    assert (error.vertex, error.item) == ("calls", 7)
    assert "None, which <function nothing, test_async_map.py" in str(error)


class Held(AbstractProcessor):
    """Refuses its first item for many rounds, in which all others do what they can."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._rounds = 300
        self._on_end = on_end

    def try_process_0(self, item: Any) -> bool:
        self._rounds -= 1
        if not self._rounds:
            self._on_end()
        return self._rounds <= 0


def test_a_slow_receiver_holds_up_new_calls(pyr: Instance) -> None:
    begun: list[int] = []
    begun_while_held: list[int] = []

    async def call(n: int) -> int:
        begun.append(n)
        return n

    dag = DAG()
    calls = dag.vertex("calls", p.map_async(call, in_flight=4))
    held = dag.vertex("held", lambda: Held(lambda: begun_while_held.extend(begun)))
    dag.edge(between(dag.vertex("source", p.read_items(range(1000))), calls))
    dag.edge(between(calls, held).config(queue_size=2, high_water_mark=8))
    pyr.new_light_job(dag).execute().result(20)
    assert begun == list(range(1000))
    in_inbox_and_queue = 2 + 2
    assert 4 <= len(begun_while_held) <= in_inbox_and_queue + 8 + 4


@pytest.mark.parametrize("in_flight", [1, 3])
def test_the_processor_can_be_called_in_all_ways(in_flight: int) -> None:
    step = p.map_async(functools.partial(added, 1), in_flight=in_flight)
    verify_processor(step, [1, 2, 3, 4], [2, 3, 4, 5])


def test_all_jobs_share_one_loop_and_no_thread_is_left(pyr: Instance, server: HttpServer) -> None:
    loops = []

    @asynccontextmanager
    async def noted() -> AsyncIterator[None]:
        loops.append((asyncio.get_running_loop(), threading.current_thread()))
        yield

    async def call(url: str) -> Any:
        async with noted():
            return await get(url)

    running = [start(pyr, [f"{server.url}/double/1?held=1"], p.map_async(call)) for _ in range(3)]
    server.wait_for(3)
    server.release()
    for each in running:
        each.result(20)
    assert len(set(loops)) == 1
    assert not loops[0][1].is_alive()
