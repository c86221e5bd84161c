"""All kinds of named maps and lists, each with a place of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from pyrite.cluster import Client, LocalCluster
from pyrite.collections import MemoryCollections, redis_at
from pyrite.collections.redis import RedisCollections
from pyrite.durable.collections import ExecutionCollections, FolderCollections
from tests.redis_server import RedisServer

Kind = MemoryCollections | FolderCollections | ExecutionCollections | RedisCollections | Client

KINDS = [
    *("memory", "folder", "folder in an execution"),
    *("1 member", "3 members", "redis", "redis through 2 members"),
]


@pytest.fixture(scope="session", params=KINDS)
def kind(
    request: pytest.FixtureRequest,
    shared_redis: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Kind]:
    with ExitStack() as stack:
        if request.param == "memory":
            yield MemoryCollections()
        elif request.param.startswith("folder"):
            folder = FolderCollections(tmp_path_factory.mktemp("folder"))
            stack.enter_context(closing(folder))
            yield folder.for_execution() if "execution" in request.param else folder
        elif request.param == "redis":
            stored = redis_at(shared_redis.url)
            assert stored is not None
            stack.callback(stored.close)
            yield stored
        else:
            through_members = request.param.startswith("redis")
            cluster = stack.enter_context(
                LocalCluster(
                    members=2 if through_members else int(request.param[0]),
                    collections=shared_redis.url if through_members else "memory",
                )
            )
            yield stack.enter_context(cluster.client())


@pytest.fixture
def collections(kind: Kind) -> Kind:
    for name in ("m", "l"):
        kind.map(name).clear()
        kind.list(name).clear()
    return kind


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the clients are shared by several tests, so their threads stay."""
