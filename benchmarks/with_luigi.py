"""Jobs on Luigi, two workers. Only the child process of `peers` imports this."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import luigi  # type: ignore[import-not-found,unused-ignore]

from benchmarks.shapes import noop


def wide(jobs: int) -> float:
    """Each task writes an empty file, by which Luigi knows that the task is done."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:

        class Job(luigi.Task):  # type: ignore[misc,unused-ignore]
            number = luigi.IntParameter()

            def output(self) -> Any:
                return luigi.LocalTarget(f"{folder}/{self.number}")

            def run(self) -> None:
                noop()
                Path(f"{folder}/{self.number}").touch()

        tasks = [Job(number=n) for n in range(jobs)]
        started = perf_counter()
        if not luigi.build(tasks, local_scheduler=True, workers=2, log_level="CRITICAL"):
            raise RuntimeError("a task failed")
        return perf_counter() - started
