"""Other tools. Each one runs in a child process, so that its imports, threads and garbage do not
slow down the other sides.

The child process uses the Python of `.venv-bench` if it exists, because the requirements of a peer
may conflict with those of development.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.child import NOT_INSTALLED
from benchmarks.ratios import CannotRun
from benchmarks.work import plain_loop

ROOT = Path(__file__).resolve().parent.parent
_PYTHONS = (ROOT / ".venv-bench" / "bin" / "python", Path(sys.executable))
_PATIENCE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Peer:
    """A function in a module of this package that does the work with another tool."""

    module: str
    function: str
    arguments: tuple[str, ...] = ()
    """What the function gets besides the number of items."""

    def run(self, items: int) -> float:
        """The duration of the work in seconds, without the start of Python and the imports."""
        return self.run_checked(items, plain_loop(items))

    def run_checked(self, items: int, expected: Any) -> float:
        """The same for any work with a known outcome."""
        answer = self._answer(items)
        if answer["outcome"] != expected:
            raise CannotRun("its outcome differs from that of the plain loop")
        return float(answer["seconds"])

    def run_jobs(self, items: int) -> float:
        """The duration of that many jobs in seconds, as measured by the function itself, without
        the start of a cluster."""
        return float(self._answer(items)["outcome"])

    def _answer(self, items: int) -> dict[str, Any]:
        python = next(python for python in _PYTHONS if python.exists())
        command = [str(python), "-m", "benchmarks.child", self.module, self.function, str(items)]
        command += self.arguments
        try:
            child = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=_PATIENCE_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise CannotRun(f"did not end within {_PATIENCE_SECONDS} s") from None
        if child.returncode == NOT_INSTALLED:
            raise CannotRun("not installed")
        if child.returncode:
            raise CannotRun(
                "failed: "
                f"{(child.stderr.strip().splitlines() or [f'exit code {child.returncode}'])[-1]}"
            )
        answer: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
        return answer
