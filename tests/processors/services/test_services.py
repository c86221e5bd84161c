"""map_with and flat_map_with: how clients are made, used and closed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import pyrite
from pyrite import (
    Instance,
    InvalidDAG,
    JobCancelled,
    JobFailed,
    Pipeline,
    Retry,
    service,
    skip,
)
from pyrite import processors as p
from pyrite.processors.services import caller
from tests.http_server import HttpServer
from tests.processors.services.test_async_map import start
from tests.services import answer_of, join_threads

log: list[Any] = []


@pytest.fixture(autouse=True)
def empty_log() -> None:
    log.clear()


def note(what: str, error: object = None) -> None:
    log.append((what, type(error).__name__, threading.current_thread().name))


def noted() -> list[str]:
    return [what for what, _, _ in log]


class Client:
    """Doubles numbers, as long as it is open."""

    def __init__(self) -> None:
        note("create")
        self.is_open = True

    def double(self, n: int) -> int:
        assert self.is_open
        note("call")
        return 2 * n

    async def double_later(self, n: int) -> int:
        await asyncio.sleep(0)
        return self.double(n)

    def end(self, error: object = None) -> None:
        self.is_open = False
        note("close", error)


class Closes(Client):
    def close(self) -> None:
        self.end()


class ClosesLater(Client):
    async def aclose(self) -> None:
        self.end()


class Context(Client):
    def __enter__(self) -> Context:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.end(error)


class AsyncContext(Client):
    async def __aenter__(self) -> AsyncContext:
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        self.end(error)


@contextlib.contextmanager
def generated() -> Iterator[Client]:
    with Context() as client:
        yield client


@contextlib.asynccontextmanager
async def generated_later() -> AsyncIterator[Client]:
    async with AsyncContext() as client:
        yield client


async def created_later() -> Closes:
    return Closes()


async def end_later(client: Client) -> None:
    client.end()


SERVICES: dict[str, Any] = {
    "class with close": Closes,
    "class with aclose": ClosesLater,
    "context manager": Context,
    "async context manager": AsyncContext,
    "generator": generated,
    "async generator": generated_later,
    "async function": created_later,
    "lambda that makes an async context manager": lambda: AsyncContext(),
    "service": service(Client, close=Client.end),
    "async service": service(Client, close=end_later),
    "service of a context manager": service(Context),
}


async def double_later(client: Client, n: int) -> int:
    return await client.double_later(n)


FUNCTIONS: dict[str, Callable[[Client, int], Any]] = {
    "function": lambda client, n: client.double(n),
    "async function": double_later,
    "lambda that returns an awaitable": lambda client, n: client.double_later(n),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("made_by", SERVICES)
def test_a_client_is_made_once_used_and_closed(made_by: str, function: str) -> None:
    stage = Pipeline().read_from(range(50), parallelism=1)
    doubled = stage.map_with(SERVICES[made_by], FUNCTIONS[function], parallelism=3)
    assert sorted(doubled.collect()) == [2 * n for n in range(50)]
    assert noted() == ["create", *["call"] * 50, "close"]
    assert len({thread for _, _, thread in log}) == 1


def test_a_client_that_is_not_async_is_used_by_one_thread(pyr: Instance) -> None:
    def look_up(db: sqlite3.Connection, n: int) -> Any:
        return db.execute("select ? + 1", (n,)).fetchone()[0]  # raises on another thread

    database = service(lambda: sqlite3.connect(":memory:"), close=sqlite3.Connection.close)
    start(pyr, range(100), p.map_with(database, look_up), local_parallelism=2).result(20)
    assert sorted(pyr.list("out")) == list(range(1, 101))


def test_a_client_that_blocks_does_not_hold_up_other_jobs(pyr: Instance) -> None:
    go_on = threading.Event()

    def blocked(client: None, n: int) -> int:
        assert go_on.wait(20)
        return n

    waiting = start(pyr, [1], p.map_with(lambda: None, blocked))
    start(pyr, [2], p.map(abs)).result(10)
    assert not waiting.done()
    go_on.set()
    waiting.result(20)


@pytest.mark.parametrize("made_by", ["context manager", "async generator"])
def test_a_client_is_closed_with_the_error_of_the_job(pyr: Instance, made_by: str) -> None:
    def fails(client: Client, n: int) -> int:
        raise ValueError(n)

    error = start(pyr, [7], p.map_with(SERVICES[made_by], fails)).exception(20)
    assert isinstance(error, JobFailed)
    assert (error.vertex, error.item) == ("calls", 7)
    assert log[-1][:2] == ("close", "JobFailed")


@pytest.mark.parametrize("made_by", ["context manager", "async generator"])
def test_a_client_is_closed_if_the_job_is_cancelled(pyr: Instance, made_by: str) -> None:
    begun = threading.Event()

    async def waits(client: Client, n: int) -> int:
        begun.set()
        await asyncio.Event().wait()
        return n

    execution = start(pyr, range(9), p.map_with(SERVICES[made_by], waits))
    assert begun.wait(20)
    execution.cancel()
    assert isinstance(execution.exception(20), JobCancelled)
    assert log[-1][:2] == ("close", "JobCancelled")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_client_that_cannot_be_made_fails_the_job(pyr: Instance, function: str) -> None:
    def refused() -> Client:
        raise ConnectionRefusedError("nobody is there")

    error = start(pyr, [7], p.map_with(refused, FUNCTIONS[function])).exception(20)
    assert isinstance(error, JobFailed)
    assert error.vertex == "calls"
    assert isinstance(error.__cause__, ConnectionRefusedError)


def test_a_client_that_exits_the_program_fails_only_its_job(pyr: Instance) -> None:
    async def exits() -> Client:
        raise SystemExit(3)

    error = start(pyr, [7], p.map_with(exits, double_later)).exception(20)
    assert isinstance(error, JobFailed)
    assert "SystemExit: 3" in str(error)


def test_a_cancel_ends_the_making_of_a_client(pyr: Instance) -> None:
    begun = threading.Event()

    async def connect() -> Client:
        begun.set()
        await asyncio.Event().wait()
        return Client()

    execution = start(pyr, [1], p.map_with(connect, double_later))
    assert begun.wait(20)
    execution.cancel()
    assert isinstance(execution.exception(20), JobCancelled)


def refuse(client: object = None) -> None:
    raise ConnectionResetError("already gone")


class CannotCommit(Client):
    def __enter__(self) -> CannotCommit:
        return self

    def __exit__(self, *error: object) -> None:
        refuse()


class CannotCommitLater(Client):
    async def __aenter__(self) -> CannotCommitLater:
        return self

    async def __aexit__(self, *error: object) -> None:
        refuse()


class CannotClose(Client):
    def close(self) -> None:
        refuse()


CANNOT_BE_CLOSED: dict[str, Any] = {
    "context manager": CannotCommit,
    "async context manager": CannotCommitLater,
    "class with close": CannotClose,
    "service": service(Client, close=refuse),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("made_by", CANNOT_BE_CLOSED)
def test_a_client_that_cannot_be_closed_fails_the_job(
    pyr: Instance, tmp_path: Path, made_by: str, function: str
) -> None:
    pipe = Pipeline()
    asked = pipe.read_from([1]).map_with(CANNOT_BE_CLOSED[made_by], FUNCTIONS[function], name="ask")
    asked.map(str).write_to(p.write_files(tmp_path / "out"))
    error = pyr.new_light_job(pipe).execute().exception(20)
    assert isinstance(error, JobFailed)
    assert error.vertex == "ask"
    assert isinstance(error.__cause__, ConnectionResetError)
    assert not list((tmp_path / "out").glob("*"))


def test_a_job_that_has_failed_keeps_its_error_if_a_client_cannot_be_closed(
    pyr: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(client: Client, n: int) -> int:
        raise ValueError(n)

    error = start(pyr, [7], p.map_with(CannotCommit, fails)).exception(20)
    assert isinstance(error, JobFailed)
    assert isinstance(error.__cause__, ValueError)
    assert "already gone" in caplog.text


def test_a_client_that_takes_long_to_close_is_waited_for(
    pyr: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller, "PATIENCE", 0.0)
    closing, go_on = threading.Event(), threading.Event()

    def close(client: Client) -> None:
        closing.set()
        assert go_on.wait(20)
        note("close")

    execution = start(pyr, [1], p.map_with(service(Client, close), Client.double))
    assert closing.wait(20)
    assert not execution.done()
    go_on.set()
    execution.result(20)
    assert noted()[-1] == "close"


def test_a_job_is_cancelled_while_its_client_is_closed(
    pyr: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller, "PATIENCE", 0.01)
    closing, go_on = threading.Event(), threading.Event()

    def close(client: Client) -> None:
        closing.set()
        go_on.wait(20)

    execution = start(pyr, [1], p.map_with(service(Client, close), Client.double))
    assert closing.wait(20)
    execution.cancel()
    assert isinstance(execution.exception(20), JobCancelled)
    go_on.set()
    join_threads("pyrite-service")


@pytest.mark.parametrize("given", [Context(), 3, generated()], ids=["client", "number", "used"])
def test_a_client_itself_is_refused(given: Any) -> None:
    with pytest.raises(InvalidDAG, match="needs something that makes a client"):
        p.map_with(given, Client.double)


def test_a_generator_that_is_not_decorated_is_refused() -> None:
    async def client() -> AsyncIterator[Client]:
        yield Client()

    with pytest.raises(InvalidDAG, match=r"decorate it with @contextlib\.asynccontextmanager"):
        p.map_with(client, Client.double)


def test_an_async_generator_is_refused_where_one_value_is_needed() -> None:
    async def two(client: Client, n: int) -> AsyncIterator[int]:
        yield n

    with pytest.raises(InvalidDAG, match=r"is an async generator; use flat_map_with\(\)"):
        p.map_with(Client, two)


def test_an_async_generator_that_a_plain_function_returns_is_refused(pyr: Instance) -> None:
    async def two(n: int) -> AsyncIterator[int]:
        yield n

    error = start(pyr, [7], p.map_with(Client, lambda client, n: two(n))).exception(20)
    assert isinstance(error, JobFailed)
    assert error.item == 7
    assert "must be one value, but it is an async generator; use flat_map_with()" in str(error)


async def listed_later(client: Client, n: int) -> list[int]:
    return [await client.double_later(n)] * n


async def yielded_later(client: Client, n: int) -> AsyncIterator[int]:
    for _ in range(n):
        yield await client.double_later(n)


def yielded(client: Client, n: int) -> Iterator[int]:
    for _ in range(n):
        yield client.double(n)


@pytest.mark.parametrize("function", [listed_later, yielded_later, yielded])
def test_flat_map_with_emits_all_that_is_made_of_an_item(function: Any) -> None:
    stage = Pipeline().read_from([3, 0, 1]).flat_map_with(Closes, function)
    assert stage.collect() == [6, 6, 6, 2]
    assert noted()[-1] == "close"


def test_flat_map_with_needs_an_iterable(pyr: Instance) -> None:
    wrong: Any = Client.double
    error = start(pyr, [7], p.flat_map_with(Closes, wrong)).exception(20)
    assert isinstance(error, JobFailed)
    assert error.item == 7
    assert "return value of <function Client.double" in str(error)
    assert "must be an iterable; got 14" in str(error)


def test_much_that_is_made_of_one_item_waits_for_room(pyr: Instance) -> None:
    step = p.flat_map_with(lambda: 20, lambda many, n: range(many))
    pyrite.testing.verify_processor(step, [1, 2], [*range(20), *range(20)])


def test_an_http_session_keeps_many_requests_in_flight(pyr: Instance, server: HttpServer) -> None:
    urls = [f"{server.url}/double/{n}?held=1" for n in range(60)]
    step = p.map_with(aiohttp.ClientSession, answer_of, in_flight=20)
    execution = start(pyr, urls, step)
    server.wait_for(20)
    server.release()
    execution.result(20)
    assert server.most_at_once == 20
    assert list(pyr.list("out")) == [2 * n for n in range(60)]


def test_requests_that_fail_are_made_again_and_then_left_out(server: HttpServer) -> None:
    urls = [f"{server.url}/double/{n}?refuses={2 * (n % 3)}" for n in range(30)]
    session = functools.partial(aiohttp.ClientSession, raise_for_status=True)
    asked = (
        Pipeline()
        .read_from(urls)
        .map_with(
            session,
            answer_of,
            retry=Retry(2, wait=0.001, on=aiohttp.ClientResponseError),
            on_error=skip(at_most=10),
        )
    )
    assert asked.collect() == [2 * n for n in range(30) if n % 3 < 2]
    assert server.requests == {str(n): (1, 3, 3)[n % 3] for n in range(30)}


def test_two_runs_of_a_job_at_the_same_time_have_their_own_clients(pyr: Instance) -> None:
    both = threading.Barrier(2, timeout=20)

    def meet(client: Client, n: int) -> int:
        both.wait()
        return n

    dag = Pipeline().read_from([1]).map_with(Closes, meet)
    dag.write_to(p.write_list("out"))
    job = pyr.new_light_job(dag.pipeline)
    for execution in [job.execute(), job.execute()]:
        execution.result(20)
    assert sorted(noted()) == ["close", "close", "create", "create"]
