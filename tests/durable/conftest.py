"""What several tests of durable jobs use: a small disk, and one deployment for all tests that do
not harm its servers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.durable.deployment import Deployment
from tests.redis_server import RedisServer


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture(scope="session")
def deployment(
    tmp_path_factory: pytest.TempPathFactory, shared_redis: RedisServer
) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path_factory.mktemp("d"), shared_redis, coordinators=2, peers=3)
    deployment.start()
    yield deployment
    deployment.stop()
