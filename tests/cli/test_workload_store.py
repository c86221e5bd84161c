"""`pyrite workload prune`; Ctrl-C while the program starts."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from pyrite.cli import app
from pyrite.workload import Workload

STOPS_IN_AN_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)
module = sys.argv[1]
sys.meta_path.insert(0, Finder())
sys.argv = ["pyrite", "version"]
from pyrite.cli import main
main()
"""


def test_prune_says_what_it_removes(tmp_path: Path) -> None:
    for function in (lambda: 1, lambda: 2):
        Workload().add("a", function).run(workers=1, store=tmp_path / "run").wait()
    command = ["workload", "prune", str(tmp_path / "run")]
    would = CliRunner().invoke(app, [*command, "--dry-run"]).output
    assert would.startswith("would remove 1 result, ")
    assert CliRunner().invoke(app, [*command, "--keep", "2"]).output == (
        "removed 0 results, 0 bytes\n"
    )
    assert CliRunner().invoke(app, command).output == would.replace("would remove", "removed")


def test_ctrl_c_while_the_program_is_importing_prints_one_line() -> None:
    for module in ("pyrite.processors", "typer", "pyrite.workload.storage.journal"):
        done = subprocess.run(
            [sys.executable, "-c", STOPS_IN_AN_IMPORT, module],
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "cancelled\n")
