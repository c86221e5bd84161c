"""Steps with clients in durable jobs: calls in flight are part of the state."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from pyrite import Pipeline
from pyrite import processors as p
from pyrite.durable.parts.committing import PartStopped
from pyrite.durable.parts.running import PartFailed
from tests.durable.parts.bench import Bench
from tests.durable.parts.test_running import commits_at_once, stop_after_commit
from tests.http_server import HttpServer
from tests.services import CannotCommit, answer_of, noted, noted_session, same

__all__ = ["commits_at_once"]


def test_a_part_makes_and_closes_a_client(tmp_path: Path, server: HttpServer) -> None:
    pipe = Pipeline()
    urls = pipe.read_from([f"{server.url}/double/{n}" for n in range(100)])
    urls.map_with(noted_session(tmp_path / "notes"), answer_of).write_to(p.write_list("out"))
    bench = Bench(tmp_path, pipe.to_dag(), members=1)
    bench.work_all()
    assert bench.found() == Counter(2 * n for n in range(100))
    assert sorted(noted(tmp_path / "notes").values()) == [1, 1]
    assert server.most_at_once > 1
    bench.close()


def test_a_client_that_cannot_be_closed_fails_its_part(tmp_path: Path) -> None:
    pipe = Pipeline()
    pipe.read_from([1]).map_with(CannotCommit, same).write_to(p.write_list("out"))
    bench = Bench(tmp_path, pipe.to_dag(), members=1)
    with pytest.raises(PartFailed) as raised:
        bench.work_all()
    assert raised.value.failed.vertex == "map_with"
    assert "the commit failed" in str(raised.value.failed.error)
    assert not bench.found()
    bench.close()


calls: Counter[int] = Counter()


async def hangs_once(n: int) -> int:
    calls[n] += 1
    if n == 20 and calls[n] == 1:
        await asyncio.Event().wait()
    return n


def test_calls_in_flight_are_made_again_if_a_peer_dies(
    tmp_path: Path, commits_at_once: None
) -> None:
    pipe = Pipeline()
    pipe.read_from(range(40)).map(hangs_once, in_flight=64).write_to(p.write_list("out"))
    bench = Bench(tmp_path, pipe.to_dag(), members=1)
    stop = stop_after_commit(bench, bench.parts[0])

    def check() -> None:
        with nullcontext() if calls[20] else suppress(PartStopped):
            stop()

    assert not bench.work(bench.parts[0], check)
    bench.work_all()
    assert calls[20] == 2
    assert bench.found() == Counter(range(40))
    bench.close()


begun: list[int] = []


def numbered(client: object, n: int) -> Iterator[tuple[int, int, int]]:
    begun.append(n)
    call = len(begun)
    for each in range(5000):
        yield n, each, call


def test_what_is_made_of_an_item_comes_from_one_call(tmp_path: Path, commits_at_once: None) -> None:
    pipe = Pipeline()
    made = pipe.read_from(range(3)).rebalance().flat_map_with(dict, numbered, in_flight=1)
    made.rebalance().write_to(p.write_list("out"))
    bench = Bench(tmp_path, pipe.to_dag(), members=1)
    part = next(each for each in bench.parts if "flat_map_with" in each.task)
    for each in bench.parts[: bench.parts.index(part)]:
        bench.work(each)
    while not bench.work(part, stop_after_commit(bench, part)):
        assert len(begun) < 50
    bench.work_all()
    found = bench.found()
    assert {(n, each) for n, each, _ in found} == {(n, i) for n in range(3) for i in range(5000)}
    assert len({(n, call) for n, _, call in found}) == 3
    bench.close()
