"""Checks that need their own process, because they end or limit its Spark. The program runs all
checks and prints which passed; the tests read its output."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence

from tests.spark.test_masters import ENVIRONMENT, ROOT


def run_checks(checks: Sequence[Callable[[], None]]) -> None:
    """Called in the program: runs the checks."""
    for check in checks:
        try:
            check()
        except BaseException:
            traceback.print_exc()
            print(f"broke: {check.__name__}", flush=True)
        else:
            print(f"held: {check.__name__}", flush=True)


def what_held(program: str, *arguments: str) -> str:
    """Called in a test: runs a program of this folder and returns its output."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.spark.{program}", *arguments],
        env=ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.stdout + done.stderr[-20_000:]
