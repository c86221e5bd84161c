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
from types import SimpleNamespace

import pytest

from pyrite.cli.workload.running import _page_of
from pyrite.errors import PyriteError
from pyrite.ui import opening
from pyrite.watching.journal.known import known_places
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


def test_a_workload_is_shown_while_it_runs_and_its_store_is_found_again(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        "import os, time\n"
        "from pyrite.workload import Workload\n"
        "def wait():\n"
        "    while not os.path.exists('go'): time.sleep(0.01)\n"
        "workload = Workload().add('wait', wait)\n"
    )
    command = [sys.executable, "-m", "pyrite", "workload", "run", "work.py", "--ui"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYRITE_RUNS": str(tmp_path / "runs")},
    )
    try:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        key = url.rpartition("/")[2]
        found = Http(url).get(f"/api/workloads/{key}").json
        assert [job["job"] for job in found["jobs"]] == ["wait"]
        (tmp_path / "go").touch()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()
    assert [known.key for known in known_places(tmp_path / "runs", "workload")] == [key]


def test_a_workload_goes_on_if_its_page_cannot_be_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: object) -> None:
        raise PyriteError("no port is free")

    monkeypatch.setattr(opening, "serve", fail)
    with _page_of(SimpleNamespace(store=tmp_path)):  # type: ignore[arg-type]
        pass
    assert "there is no page of the run: no port is free; the run goes on" in (
        " ".join(capsys.readouterr().err.split())
    )
