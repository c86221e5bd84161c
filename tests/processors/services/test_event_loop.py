"""The event loop of a process, and code of the user's that does not end."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

import pyrite
from pyrite import Instance, JobCancelled, JobFailed, Pipeline
from pyrite import processors as p
from pyrite.processors.services import caller, event_loop
from pyrite.processors.services.event_loop import shared_loop
from tests.processors.services.test_async_map import start
from tests.services import join_threads


async def doubled(n: int) -> int:
    return 2 * n


def test_the_thread_ends_with_the_last_user() -> None:
    loop = shared_loop.acquire()
    assert shared_loop.acquire() is loop
    shared_loop.release(10)
    assert loop.is_running()
    shared_loop.release(10)
    assert loop.is_closed()


def test_a_loop_that_cannot_be_made_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(asyncio, "Runner", refused)
    with pytest.raises(OSError, match="too many open files"):
        shared_loop.acquire()
    monkeypatch.undo()
    assert Pipeline().read_from([1]).map(doubled).collect() == [2]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_its_own_loop() -> None:
    shared_loop.acquire()
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if Pipeline().read_from([1]).map(doubled).collect() == [2] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    shared_loop.release(10)


def test_a_job_with_async_steps_is_not_waited_for_on_the_loop() -> None:
    called: list[int] = []

    async def noted(n: int) -> int:
        called.append(n)
        return n

    async def nested(n: int) -> list[int]:
        return Pipeline().read_from(range(n)).map(noted).collect()

    with pytest.raises(JobFailed, match=r"await asyncio\.to_thread\(stage\.collect\)"):
        Pipeline().read_from([1]).map(nested).collect()
    assert called == []


def test_an_execution_with_async_steps_is_not_waited_for_on_the_loop() -> None:
    async def nested(n: int) -> int:
        with pyrite.instance() as pyr:
            start(pyr, range(n), p.map_async(doubled)).result()
        return n

    with pytest.raises(JobFailed, match="cannot be waited for on Pyrite's event loop"):
        Pipeline().read_from([1]).map(nested).collect()
    assert Pipeline().read_from([1]).map(doubled).collect() == [2]
    join_threads("pyrite-close")


def test_async_steps_inside_async_functions() -> None:
    inner = Pipeline().read_from([1, 2]).map(doubled)

    async def on_a_thread(n: int) -> list[int]:
        return await asyncio.to_thread(inner.collect)

    async def awaited(n: int) -> int:
        with pyrite.instance() as pyr:
            await asyncio.wrap_future(start(pyr, [n], p.map_async(doubled)))
            return int(pyr.list("out")[0])

    async def without_async_steps(n: int) -> list[int]:
        return Pipeline().read_from([n]).map(str).map(int).collect()

    assert Pipeline().read_from([1]).map(on_a_thread).collect() == [[2, 4]]
    assert Pipeline().read_from([1]).map(awaited).collect() == [2]
    assert Pipeline().read_from([1]).map(without_async_steps).collect() == [[1]]


def test_background_tasks_that_a_call_leaves_are_cancelled(pyr: Instance) -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("background")

    async def call(n: int) -> int:
        tasks.add(asyncio.create_task(wait()))
        await asyncio.sleep(0)
        return n

    tasks: set[asyncio.Task[None]] = set()
    start(pyr, [1], p.map_async(call)).result(20)
    assert ended == ["background"]


def test_a_call_that_blocks_does_not_keep_a_cancelled_job(
    pyr: Instance, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(caller, "PATIENCE", 0.01)
    begun, go_on = threading.Event(), threading.Event()

    def blocks(client: None, n: int) -> int:
        begun.set()
        go_on.wait(20)
        return n

    execution = start(pyr, range(9), p.map_with(lambda: None, blocks))
    assert begun.wait(20)
    execution.cancel()
    assert isinstance(execution.exception(20), JobCancelled)
    assert "vertex 'calls': a call has not ended after" in caplog.text
    go_on.set()
    join_threads("pyrite-service")


def test_a_call_that_ignores_its_cancel_does_not_keep_the_job(
    pyr: Instance, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(caller, "PATIENCE", 0.01)
    begun = threading.Event()
    go_on: list[asyncio.Event] = []

    async def ignores(n: int) -> int:
        go_on.append(asyncio.Event())
        begun.set()
        while not go_on[0].is_set():
            try:
                await go_on[0].wait()
            except asyncio.CancelledError:
                continue
        return n

    loop = shared_loop.acquire()
    execution = start(pyr, [1], p.map_async(ignores))
    assert begun.wait(20)
    execution.cancel()
    assert isinstance(execution.exception(20), JobCancelled)
    assert "vertex 'calls': a call has not ended after" in caplog.text
    loop.call_soon_threadsafe(go_on[0].set)
    shared_loop.release(event_loop.PATIENCE)


def test_a_task_of_the_users_that_exits_ends_no_calls_of_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def exits() -> None:
        raise SystemExit("no key")

    async def starts_another(n: int) -> int:
        task = asyncio.create_task(exits())
        await asyncio.wait([task])
        assert isinstance(task.exception(), SystemExit)
        return n

    stage = Pipeline().read_from(range(20)).map(starts_another, in_flight=4)
    assert stage.collect() == [*range(20)]
    assert "raised SystemExit('no key')" in caplog.text
