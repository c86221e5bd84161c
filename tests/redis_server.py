"""A real Redis for tests: on loopback, at a free port, without files."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest
from redis import Redis
from redis.exceptions import ConnectionError

from tests.ports import free_port

START_SECONDS = 10.0


class RedisServer:
    def __init__(self, *arguments: str, password: str = "") -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.fail(
                "redis-server is not installed, and the tests of collections in Redis need it; run "
                "scripts/install-test-servers, or: apt-get install redis-server"
            )
        self._program = program
        self.port = free_port()
        self._password = password
        self._arguments = (*arguments, *(("--requirepass", password) if password else ()))
        self.start()

    @property
    def url(self) -> str:
        user = f":{self._password}@" if self._password else ""
        return f"redis://{user}127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                *(self._program, "--bind", "127.0.0.1", "--port", str(self.port)),
                *("--save", "", "--appendonly", "no", "--dir", "/", *self._arguments),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        give_up = time.monotonic() + START_SECONDS
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return
            except ConnectionError:
                assert self._process.poll() is None, "redis-server ended while it started"
                assert time.monotonic() < give_up, "redis-server does not answer"
                time.sleep(0.01)

    @property
    def pid(self) -> int:
        return self._process.pid

    def client(self) -> Redis:
        """A plain client, to look at what is there."""
        return Redis.from_url(self.url)

    def clear(self) -> None:
        with self.client() as client:
            client.flushall()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
