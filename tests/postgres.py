"""A real PostgreSQL for tests: on loopback, at a free port, in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.ports import free_port

START_SECONDS = 30.0


class PostgresServer:
    def __init__(self) -> None:
        self._programs = _programs()
        # The server refuses to run as root, and its user must reach the folder.
        self._as_user: dict[str, Any] = {"cwd": "/"}
        self.folder = Path(tempfile.mkdtemp(prefix="pyrite-postgres-"))
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._as_user |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.port = free_port()
        self._schemas = 0
        subprocess.run(
            [
                *(self._programs / "initdb", "-D", self.folder / "data", "-U", "postgres"),
                *("-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"),
            ],
            check=True,
            capture_output=True,
            **self._as_user,
        )
        self._start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        return self._process.pid

    def new_schema(self) -> str:
        """The URL for a schema of its own."""
        self._schemas += 1
        name = f"test_{self._schemas}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.url}?options=-csearch_path%3D{name}"

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)  # ends the connections of others
        self._process.wait()
        shutil.rmtree(self.folder)

    def _start(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "shared_buffers": "32MB",
            "autovacuum": "off",
            "timezone": "UTC",
        }
        self._process = subprocess.Popen(
            [
                *(self._programs / "postgres", "-D", self.folder / "data"),
                *(each for name, value in settings.items() for each in ("-c", f"{name}={value}")),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._as_user,
        )
        give_up = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, "PostgreSQL ended while it started"
                assert time.monotonic() < give_up, "PostgreSQL does not answer"
                time.sleep(0.01)


def _programs() -> Path:
    """The folder with the server's programs. Debian does not put them on PATH."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb"), shutil.which("initdb")]
    programs = [Path(each).resolve().parent for each in found if each is not None]
    if not programs:
        pytest.fail(
            "PostgreSQL is not installed, and the tests of databases need it; run "
            "scripts/install-test-servers, or: apt-get install postgresql"
        )
    return max(programs)
