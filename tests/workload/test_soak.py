"""Long runs in which processes are killed all the time, for `make soak`. The other tests include a
short run of this kind."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from pyrite.workload import JobState, Run, Schedule, Workload
from tests.workload import commands
from tests.workload.conftest import processes_of

ROUNDS = 100


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(4))
def test_a_run_whose_processes_are_killed_or_stopped_ends_like_an_undisturbed_one(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    count, out = 1500, str(tmp_path / "out")

    def work(n: int, sleep: float, *upstream: object) -> int:
        time.sleep(sleep)
        print("job", n)
        commands.note(out, str(n))
        return n * n

    workload = Workload()
    for n in range(count):
        workload.add(f"j{n}", work, args=[n, rng.random() * 0.06], timeout=2, retries=1000)
    edges = [
        (f"j{rng.randrange(max(0, n - 50), n)}", f"j{n}")
        for n in range(1, count)
        for _ in range(rng.randrange(3))
    ]
    schedule = Schedule([*edges, *((f"j{n}", f"j{n}") for n in range(count))])
    run = workload.run(schedule, workers=3, store=tmp_path / "run", crashes_max=1000)
    attacks = 0
    while attacks < ROUNDS and not run.wait_for_master(rng.random() * 0.5):
        attacks += 1
        target = rng.choice(["master", "worker", "worker", "stop", "cancel"])
        workers = [
            pid for pid, command in processes_of(tmp_path / "run") if '"workers.worker"' in command
        ]
        if target == "master":
            os.kill(run.pid, signal.SIGKILL)
        elif target == "cancel":
            run.cancel()
        elif workers:
            try:
                os.kill(
                    rng.choice(workers), signal.SIGKILL if target == "worker" else signal.SIGSTOP
                )
            except ProcessLookupError:
                pass
        if target in ("master", "cancel"):
            assert run.wait_for_master(5)
            before = {row["job"] for row in run.table() if row["state"].has_result}
            run = Run.resume(tmp_path / "run")
            assert before <= {row["job"] for row in run.table() if row["state"].has_result}
    run.wait()
    assert {row["state"] for row in run.table()} == {JobState.DONE}
    assert dict(run.results) == {f"j{n}": n * n for n in range(count)}
    assert all(f"job {n}\n" == run.log(f"j{n}") for n in range(0, count, 37))
    ran = commands.lines(out)
    assert set(ran) == {str(n) for n in range(count)}
    assert len(ran) <= count + 3 * attacks
