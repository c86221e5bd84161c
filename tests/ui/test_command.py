"""The command `pyrite ui`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ui.http import Http


@contextmanager
def _started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command and the address that it prints."""
    command = [sys.executable, "-m", "pyrite", "ui", "--no-open", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+", line)
        assert found is not None, line
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


def test_the_page_is_there_until_ctrl_c_whoever_looks(tmp_path: Path) -> None:
    with _started("--port", "0", "--runs", str(tmp_path)) as (process, url):
        with Http(url).events("/api/events") as events:
            assert next(events)[1]["total"] == 0
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
        assert time.monotonic() - began < 2


def test_elsewhere_the_address_has_a_token(tmp_path: Path) -> None:
    with _started("--host", "0.0.0.0", "--port", "0", "--runs", str(tmp_path)) as (_, url):
        assert Http(url).get("/api/runs").status == 401
        path = "/" + url.partition("?")[1] + url.partition("?")[2]
        assert Http(url).get(path).status == 303
