"""Fixtures for all tests: an instance per pool size, the profile of hypothesis, and a check that no
thread is left."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest

import pyrite
from pyrite import Instance
from tests.postgres import PostgresServer
from tests.redis_server import RedisServer

if TYPE_CHECKING:
    from tests.http_server import HttpServer

hypothesis.settings.register_profile(
    "default",
    deadline=None,
    print_blob=True,
    # How much data the first examples need is chance, and how long they take is the machine's.
    suppress_health_check=[
        hypothesis.HealthCheck.data_too_large,
        hypothesis.HealthCheck.too_slow,
    ],
)
hypothesis.settings.load_profile("default")

# A shell lets what it starts in the background ignore SIGINT, and the commands that tests interrupt
# would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def pyr() -> Iterator[Instance]:
    with pyrite.instance() as instance:
        yield instance


@pytest.fixture(params=[1, 2, 4], ids=lambda size: f"pool of {size}")
def pyr_of_any_size(request: pytest.FixtureRequest) -> Iterator[Instance]:
    with pyrite.instance(cooperative_threads=request.param) as instance:
        yield instance


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [
        thread.name
        for thread in set(threading.enumerate()) - before
        if thread.name.startswith("pyrite")
    ]
    assert not left


@pytest.fixture(scope="session")
def local_spark() -> Iterator[Instance]:
    """One Spark session for all tests that do not need their own. A process can have only one at a
    time."""
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
    }
    with pyrite.instance(spark_master="local[2, 4]", spark_conf=conf) as instance:
        yield instance


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    server = RedisServer()
    yield server
    server.stop()


@pytest.fixture
def redis(shared_redis: RedisServer) -> RedisServer:
    """A Redis in which nothing is stored."""
    shared_redis.clear()
    return shared_redis


@pytest.fixture
def server() -> Iterator[HttpServer]:
    """A new HTTP server, for steps that call services."""
    from tests.http_server import HttpServer  # it takes a moment to import

    with HttpServer().running() as running:
        yield running


@pytest.fixture(scope="session")
def shared_postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.stop()
