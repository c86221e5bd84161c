"""Checks that need a process of their own, since they end or limit its Spark: the program runs them
all and prints which held, and the tests read that."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence

from tests.spark.test_masters import ENVIRONMENT, ROOT


def run_checks(checks: Sequence[Callable[[], None]]) -> None:
    """In the program."""
    for check in checks:
        try:
            check()
        except BaseException:
            traceback.print_exc()
            print(f"broke: {check.__name__}", flush=True)
        else:
            print(f"held: {check.__name__}", flush=True)


def what_held(program: str) -> str:
    """In a test: what a program of this folder says."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.spark.{program}"],
        env=ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.stdout + done.stderr[-20_000:]
