"""Coordinators as processes, for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


class Program:
    def __init__(self, place: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pyrite", "coordinator", "--durable", place],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def says(self, text: str) -> str:
        """The next line with this text in it. Waits for it."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if text in line:
                return line
        self._process.wait()
        raise AssertionError(f"the coordinator ended and did not say {text!r}")

    def end(self, number: signal.Signals) -> int:
        """Its exit code."""
        self._process.send_signal(number)
        return self._process.wait()

    def wait(self) -> int:
        self._process.communicate()
        return self._process.returncode

    def close(self) -> None:
        self._process.kill()
        self.wait()


@contextmanager
def leader_and_standby(place: str) -> Iterator[tuple[Program, Program]]:
    with ExitStack() as stack:
        leader = Program(place)
        stack.callback(leader.close)
        leader.says("leads")
        standby = Program(place)
        stack.callback(standby.close)
        standby.says("is a stand-by")
        yield leader, standby
