"""An async map over an HTTP server that answers in 20 ms, against a loop of asyncio written by hand
with the same client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console

import pyrite
from benchmarks.ratios import AtMost, Side, WrongOutcome, compare, seconds
from benchmarks.slow_server import slow_server
from pyrite import Pipeline
from pyrite import processors as p

if TYPE_CHECKING:
    import aiohttp

REQUESTS = 4_000
IN_FLIGHT = 100
ANSWER_SECONDS = 0.02
BY_HAND = "gather with a semaphore"
NEARLY_AS_FAST = AtMost(times=1.25, than=BY_HAND)  # 0.8 of its throughput


def run(console: Console) -> None:
    try:
        import aiohttp  # noqa: F401
    except ModuleNotFoundError:
        console.print("async calls: aiohttp is not installed")
        return
    with slow_server(ANSWER_SECONDS) as url, pyrite.instance() as pyr:
        title = f"{IN_FLIGHT} requests in flight, answered in {ANSWER_SECONDS * 1000:.0f} ms"
        console.print(compare(title, _sides(pyr, [f"{url}{n}" for n in range(REQUESTS)])))


def session() -> aiohttp.ClientSession:
    import aiohttp

    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=IN_FLIGHT))


async def get(client: aiohttp.ClientSession, url: str) -> str:
    async with client.get(url) as answer:
        return await answer.text()


async def _by_hand(urls: list[str]) -> list[str]:
    slots = asyncio.Semaphore(IN_FLIGHT)
    async with session() as client:

        async def call(url: str) -> str:
            async with slots:
                return await get(client, url)

        return await asyncio.gather(*map(call, urls))


def _sides(pyr: pyrite.Instance, urls: list[str]) -> list[Side]:
    def by_hand() -> float:
        return _checked(lambda: asyncio.run(_by_hand(urls)))

    pipe = Pipeline()
    asked = pipe.read_from(urls).map_with(session, get, in_flight=IN_FLIGHT)
    asked.write_to(p.write_list("answers"))
    job = pyr.new_light_job(pipe)

    def as_pipeline() -> float:
        pyr.list("answers").clear()

        def execute() -> list[str]:
            job.execute().result()
            return list(pyr.list("answers"))

        return _checked(execute)

    items = len(urls)
    return [
        Side(name=BY_HAND, items=items, run=by_hand),
        Side(name="map_with, light job", items=items, run=as_pipeline, aim=NEARLY_AS_FAST),
    ]


def _checked(run: Callable[[], list[str]]) -> float:
    answers: list[str] = []
    took = seconds(lambda: answers.extend(run()))
    if answers != ["ok"] * REQUESTS:
        raise WrongOutcome(f"got {len(answers)} answers instead of {REQUESTS}")
    return took
