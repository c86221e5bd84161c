"""What it costs that durable jobs can be watched while they run: peers that tell what they have
done, and somebody who looks, against peers that tell nothing.

Nothing waits for it, so it costs CPU time and nothing else. All peers are threads of this process,
so its CPU time is all that the job takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any
from unittest.mock import patch

from rich.console import Console
from tests.durable.counting import counting, expected
from tests.durable.threads import running

from benchmarks.ratios import NoMoreThan, Side, WrongOutcome, compare
from benchmarks.seeing import unwatched, watched
from pyrite import Execution
from pyrite.durable.peer import telling

ITEMS = 4_000_000
ROUNDS = 6
SILENT = "peers tell nothing"


def run(console: Console) -> None:
    aim = NoMoreThan(times=1.02, than=SILENT)
    sides = [
        Side(name=SILENT, items=ITEMS, run=_silent, rounds=ROUNDS),
        Side(
            name="peers tell, and somebody looks",
            items=ITEMS,
            run=lambda: _cpu_seconds(watched),
            rounds=ROUNDS,
            aim=aim,
        ),
    ]
    console.print(compare("seeing: a durable job in a folder", sides))


def _silent() -> float:
    with patch.object(telling, "PERIOD", math.inf):
        return _cpu_seconds(unwatched)


def _cpu_seconds(watching: Callable[[Execution], Any]) -> float:
    with TemporaryDirectory() as folder, running(Path(folder), peers=2) as threads:
        began = process_time()
        execution = threads.execute(counting(ITEMS, "counts"), members=2)
        with watching(execution):
            execution.result(600)
        taken = process_time() - began
        if dict(threads.collections.map("counts")) != expected(ITEMS):
            raise WrongOutcome("the job counted wrong")
    return taken
