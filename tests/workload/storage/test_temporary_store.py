"""A run without `store=` belongs to the process that started it, and leaves nothing behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyrite.workload import Workload
from pyrite.workload.storage import temporary
from tests.workload import commands
from tests.workload.conftest import processes_of, wait_until

SCRIPT = """
import os, sys, time
from pyrite.workload import Workload
from tests.workload import commands
said, go, how, kind = sys.argv[1:]
run = Workload().add("job", commands.tell_and_wait, args=[said, go]).run(workers=1, kind=kind)
commands.wait_for(said)
if how == "ended":
    open(go, "w").close()
    run.wait()
print("ready", flush=True)
if how != "exit":
    time.sleep(1000)
"""


def start(tmp_path: Path, how: str, kind: str) -> subprocess.Popen[str]:
    (tmp_path / "tmp").mkdir()
    arguments = [str(tmp_path / "said"), str(tmp_path / "go"), how, kind]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def folders(tmp_path: Path) -> list[Path]:
    return [*(tmp_path / "tmp").glob("pyrite-workload-*")]


@pytest.mark.parametrize("kind", ["persistent", "transient"])
def test_a_program_that_ends_before_its_run_cancels_it_and_says_so(
    tmp_path: Path, kind: str
) -> None:
    process = start(tmp_path, "exit", kind)
    _, errors = process.communicate(timeout=60)
    assert folders(tmp_path) == []
    wait_until(lambda: not processes_of(tmp_path), 60)
    assert process.returncode == 0
    if kind == "persistent":
        assert errors.startswith("pyrite: a run without store= was cancelled")


@pytest.mark.parametrize(
    ("number", "how"),
    [(signal.SIGINT, "running"), (signal.SIGTERM, "running"), (signal.SIGKILL, "ended")],
)
def test_a_program_that_is_killed_leaves_no_folder_and_no_process(
    tmp_path: Path, number: signal.Signals, how: str
) -> None:
    process = start(tmp_path, how, "persistent")
    assert len(folders(tmp_path)) == 1
    process.send_signal(number)
    process.communicate(timeout=60)
    wait_until(lambda: not folders(tmp_path) and not processes_of(tmp_path), 60)


def test_the_folder_is_removed_with_the_last_handle_of_an_ended_run() -> None:
    run = Workload().add("job", commands.nothing).run(workers=1).wait()
    store = run.store
    assert store.exists()
    del run
    gc.collect()
    assert not store.exists()


def test_ctrl_c_while_the_folder_is_made_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "_keeper_of_here", interrupted)
    with pytest.raises(KeyboardInterrupt):
        temporary.temporary_store()
    assert list(tmp_path.iterdir()) == []
