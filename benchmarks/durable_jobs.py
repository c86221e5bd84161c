"""Durable jobs against the same DAG as a light job, against Celery, and against a consumer of NATS
that was written by hand; and how long work stops when the leading coordinator dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table
from tests.durable.deployment import Deployment
from tests.nats import Nats
from tests.redis_server import RedisServer

import pyrite
from benchmarks.counting import BATCH, counts, pair
from benchmarks.peers import Peer
from benchmarks.ratios import AtMost, Side, WrongOutcome, compare, mark, seconds
from pyrite import DAG, JobConfig, between
from pyrite import processors as p

ITEMS = 1_000_000
PEER_ITEMS = 200_000
LIGHT, FOLDER = "light job", "durable, in a folder"
DEPLOYED = "durable, on ZooKeeper and NATS"
LEAST = 200_000
"""Items per second, in a folder and on NATS."""
SLOWEST = 1 / 0.3
"""Times as long as the light job."""
PEERS = 3
CONFIG = JobConfig(members=2)
FAILOVER_SECONDS = 3.0


def run(console: Console) -> None:
    with TemporaryDirectory() as folder, _redis() as redis:
        deployment = Deployment(_made(folder, "servers"), redis, coordinators=2, peers=PEERS)
        deployment.start()
        try:
            with (
                pyrite.instance() as light,
                pyrite.instance(durable=Path(folder) / "jobs", peers=PEERS) as embedded,
                deployment.instance() as deployed,
                _nats(_made(folder, "nats")) as nats,
            ):
                sides = [
                    Side(name=LIGHT, items=ITEMS, run=lambda: _timed(light, light.new_light_job)),
                    _durable(FOLDER, embedded),
                    _durable(DEPLOYED, deployed),
                    _peer("Celery and Redis, 2 processes", "with_celery", CELERY_REDIS=redis.url),
                    _peer("NATS consumer by hand, 2 processes", "with_nats", NATS_URL=nats.url),
                ]
                title = f"in -> map -> partitioned count -> out, batches of {BATCH:,}"
                console.print(compare(title, sides))
                console.print(f"aim of both durable sides: at least {LEAST:,} items per second")
                console.print(_failover(deployment, deployed))
        finally:
            deployment.stop()


def counting(items: int, name: str = "counts", pause: float = 0.0) -> DAG:
    def mapped(number: int) -> tuple[int, int]:
        if pause and number % BATCH == 0:
            time.sleep(pause)
        return pair(number)

    dag = DAG()
    read = dag.vertex("read", p.read_items(range(items)))
    made = dag.vertex("map", p.map(mapped if pause else pair))
    count = dag.vertex(
        "count",
        p.group_and_accumulate(lambda kv: kv[0], 0, lambda total, kv: total + kv[1]),
    )
    out = dag.vertex("out", p.write_map(name))
    dag.edge(between(read, made))
    dag.edge(between(made, count).distributed().partitioned(key=lambda kv: kv[0]))
    dag.edge(between(count, out))
    return dag


def _timed(instance: pyrite.Instance, new: Callable[[DAG], pyrite.Job]) -> float:
    instance.map("counts").clear()
    job = new(counting(ITEMS))
    taken = seconds(lambda: job.execute().result())
    if dict(instance.map("counts")) != counts(ITEMS):
        raise WrongOutcome("the counts are wrong")
    return taken


def _durable(name: str, instance: pyrite.Instance) -> Side:
    instance.new_durable_job(counting(1000, "warm"), CONFIG).execute().result()
    return Side(
        name=name,
        items=ITEMS,
        run=lambda: _timed(instance, lambda dag: instance.new_durable_job(dag, CONFIG)),
        aim=AtMost(times=SLOWEST, than=LIGHT),
    )


def _peer(name: str, module: str, **environment: str) -> Side:
    os.environ.update(environment)
    peer = Peer(f"benchmarks.{module}", "run")
    return Side(name=name, items=PEER_ITEMS, run=lambda: peer.run_jobs(PEER_ITEMS), rounds=2)


def _failover(deployment: Deployment, instance: pyrite.Instance, deaths: int = 3) -> Table:
    """How long it takes from the death of the leading coordinator until a job that is submitted at
    that moment is complete, which needs the next leader."""
    table = Table("death of the leading coordinator, 2 s sessions", title_justify="left")
    table.add_column("a job submitted then is complete after", justify="right")
    table.add_column("aim")
    for death in range(1, deaths + 1):
        store = deployment.store()
        leader = deployment.leader(store)
        store.close()
        started = time.perf_counter()
        os.kill(leader.pid, signal.SIGKILL)
        instance.new_durable_job(counting(1000, f"after{death}"), CONFIG).execute().result(60)
        taken = time.perf_counter() - started
        leader.kill()
        leader.start()
        verdict = mark(taken <= FAILOVER_SECONDS)
        table.add_row(f"{death}", f"{taken:.2f} s", f"at most {FAILOVER_SECONDS:g} s: {verdict}")
    return table


@contextmanager
def _redis() -> Iterator[RedisServer]:
    server = RedisServer()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def _nats(folder: Path) -> Iterator[Nats]:
    server = Nats(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def _made(folder: str, name: str) -> Path:
    made = Path(folder) / name
    made.mkdir()
    return made
