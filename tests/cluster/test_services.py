"""Steps with clients on members: each member has its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from pyrite import JobCancelled, JobFailed, Pipeline
from pyrite import processors as p
from pyrite.cluster import Client
from tests.http_server import HttpServer
from tests.services import CannotCommit, answer_of, noted, noted_session, same


def enriched(urls: list[str], notes: Path, in_flight: int = 16) -> Pipeline:
    pipe = Pipeline()
    asked = pipe.read_from(urls).map_with(noted_session(notes), answer_of, in_flight=in_flight)
    asked.rebalance().map(str).write_to(p.write_list("answers of a service"))
    return pipe


def test_each_member_makes_and_closes_one_client(
    client: Client, server: HttpServer, tmp_path: Path
) -> None:
    urls = [f"{server.url}/double/{n}?held=1" for n in range(200)]
    execution = client.new_light_job(enriched(urls, tmp_path / "notes", 5)).execute()
    server.wait_for(2 * 5)
    server.release()
    execution.result(20)
    assert sorted(map(int, client.list("answers of a service"))) == [2 * n for n in range(200)]
    client.list("answers of a service").clear()
    assert server.most_at_once == 2 * 5
    counts = noted(tmp_path / "notes")
    assert sorted(counts.values()) == [1, 1, 1, 1]


def test_an_error_closes_the_clients_of_all_members(
    client: Client, server: HttpServer, tmp_path: Path
) -> None:
    urls = [f"{server.url}/double/{n}?held=1" for n in range(200)]
    urls[30] = f"{server.url}/double/30?status=500"
    error = client.new_light_job(enriched(urls, tmp_path / "notes")).execute().exception(20)
    assert isinstance(error, JobFailed)
    assert (error.vertex, error.item) == ("map_with", urls[30])
    counts = noted(tmp_path / "notes")
    assert {what.replace("made", "closed") for what in counts} <= set(counts)


def test_a_cancel_closes_the_clients_of_all_members(
    client: Client, server: HttpServer, tmp_path: Path
) -> None:
    urls = [f"{server.url}/double/{n}?held=1" for n in range(200)]
    execution = client.new_light_job(enriched(urls, tmp_path / "notes", 5)).execute()
    server.wait_for(2 * 5)
    execution.cancel()
    assert isinstance(execution.exception(20), JobCancelled)
    assert sorted(noted(tmp_path / "notes").values()) == [1, 1, 1, 1]


def test_a_client_that_cannot_be_closed_fails_the_job(client: Client) -> None:
    pipe = Pipeline()
    pipe.read_from([1]).map_with(CannotCommit, same).write_to(p.noop())
    error = client.new_light_job(pipe).execute().exception(20)
    assert isinstance(error, JobFailed)
    assert error.vertex == "map_with"
    assert "the commit failed" in str(error)


async def slow(n: int) -> Any:
    await asyncio.sleep(0.001 * (n % 3))
    return n


def test_an_async_map_reads_what_came_from_another_member(client: Client) -> None:
    pipe = Pipeline()
    pipe.read_from(range(500)).rebalance().map(slow).write_to(
        p.write_list("answers of a slow step")
    )
    client.new_light_job(pipe).execute().result(20)
    assert sorted(client.list("answers of a slow step")) == list(range(500))
    client.list("answers of a slow step").clear()
