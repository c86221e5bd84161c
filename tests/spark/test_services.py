"""Steps with clients on Spark: each task has its own."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from pyrite import Instance, JobFailed, Pipeline
from tests.http_server import HttpServer
from tests.services import CannotCommit, answer_of, noted, noted_session, same


def test_clients_are_made_and_closed_by_each_task(
    pyr: Instance, server: HttpServer, tmp_path: Path
) -> None:
    urls = [f"{server.url}/double/{n}" for n in range(100)]
    asked = Pipeline().read_from(urls).map_with(noted_session(tmp_path / "notes"), answer_of)
    assert sorted(asked.collect(on=pyr)) == [2 * n for n in range(100)]
    counts = noted(tmp_path / "notes")
    assert sum(counts.values()) == 2 * 2
    assert {what.split()[0] for what in counts} == {"made", "closed"}
    assert server.most_at_once > 2


def test_an_error_names_the_vertex_and_the_item(
    pyr: Instance, server: HttpServer, tmp_path: Path
) -> None:
    urls = [f"{server.url}/double/{n}?status={500 if n == 7 else 200}" for n in range(20)]
    asked = Pipeline().read_from(urls).map_with(noted_session(tmp_path / "notes"), answer_of)
    with pytest.raises(JobFailed, match="500") as raised:
        asked.collect(on=pyr)
    assert (raised.value.vertex, raised.value.item) == ("map_with", urls[7])
    counts = noted(tmp_path / "notes")
    assert sum(n for what, n in counts.items() if what.startswith("made")) == sum(
        n for what, n in counts.items() if what.startswith("closed")
    )


def test_a_client_that_cannot_be_closed_fails_the_job(pyr: Instance) -> None:
    with pytest.raises(JobFailed, match="the commit failed") as raised:
        Pipeline().read_from([1]).map_with(CannotCommit, same).collect(on=pyr)
    assert raised.value.vertex == "map_with"


async def jittered(n: int) -> int:
    await asyncio.sleep(random.random() * 0.002)
    return n


def test_async_maps_on_both_sides_of_exchanges(pyr: Instance) -> None:
    numbers = Pipeline().read_from(range(300)).map(jittered)
    sums = (
        numbers.group_by(lambda n: n % 7).count().map(jittered_pair).rebalance().map(jittered_pair)
    )
    expected = [(key, len(range(key, 300, 7))) for key in range(7)]
    assert sorted(sums.collect(on=pyr)) == expected


async def jittered_pair(pair: tuple[int, int]) -> tuple[int, int]:
    await asyncio.sleep(random.random() * 0.002)
    return pair
