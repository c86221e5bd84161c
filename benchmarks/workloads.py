"""Workloads of jobs that do nothing: the cost of a job, against other schedulers and against a
plain process pool.

The time of Pyrite includes everything from the tables to the end of the run: the start of its
processes, and writing all results to disk. The times of the other tools do not include the start of
their clusters, and they keep their results in memory.
"""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor, wait
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.peers import Peer
from benchmarks.ratios import AtLeast, Side, WrongOutcome, compare, seconds
from benchmarks.readings import Reading, report
from benchmarks.shapes import SHAPES, noop
from pyrite.workload import JobState, Schedule, Workload

JOBS = 100_000
DASK_JOBS = 10_000
RAY_JOBS = 10_000
LUIGI_JOBS = 500


def run(console: Console) -> None:
    for shape in SHAPES:
        ours = f"Pyrite, durable, {shape}"
        sides = [
            Side(name=ours, items=JOBS, run=partial(_pyrite, shape), rounds=2),
            _peer("Dask distributed", "with_dask", shape, DASK_JOBS, than=ours),
            _peer("Ray", "with_ray", shape, RAY_JOBS, than=ours),
        ]
        if shape == "wide":
            sides.append(_peer("Luigi", "with_luigi", shape, LUIGI_JOBS, than=ours))
            sides.append(
                Side(
                    name="ProcessPoolExecutor, not durable",
                    items=JOBS,
                    run=_process_pool,
                    rounds=2,
                )
            )
        console.print(compare(f"{shape}: jobs that do nothing, two workers", sides, item="job"))
    console.print(report(f"{JOBS:,} jobs, two workers", _readings()))


def _peer(name: str, module: str, shape: str, jobs: int, *, than: str) -> Side:
    peer = Peer(f"benchmarks.{module}", shape)
    return Side(
        name=name,
        items=jobs,
        run=partial(peer.run_jobs, jobs),
        rounds=2,
        aim=AtLeast(times=5, than=than),
    )


def _tables(shape: str) -> tuple[list[dict[str, object]], list[dict[str, str]]]:
    upstream = SHAPES[shape]
    jobs: list[dict[str, object]] = [{"job": f"j{n}", "command": noop} for n in range(JOBS)]
    edges = [{"from": f"j{above}", "to": f"j{n}"} for n in range(JOBS) for above in upstream(n)]
    edges += [{"from": f"j{n}", "to": f"j{n}"} for n in range(JOBS)]
    return jobs, edges


def _pyrite(shape: str) -> float:
    jobs, edges = _tables(shape)
    folder = tempfile.mkdtemp()

    def work() -> None:
        run = Workload.from_table(jobs).run(
            Schedule.from_table(edges), workers=2, store=Path(folder, "run")
        )
        if run.wait().counts() != {JobState.DONE: JOBS}:
            raise WrongOutcome(f"not all jobs are done: {run}")

    try:
        return seconds(work)
    finally:
        shutil.rmtree(folder)


def _process_pool() -> float:
    with ProcessPoolExecutor(2) as pool:
        pool.submit(noop).result()
        return seconds(lambda: wait([pool.submit(noop) for _ in range(JOBS)]))


def _readings() -> list[Reading]:
    """The aims that are absolute amounts, not ratios."""
    found = []
    for shape in SHAPES:
        jobs, edges = _tables(shape)
        built = min(_build_seconds(jobs, edges) for _ in range(3))
        found.append(Reading(name=f"{shape}: build and validate", amount=built, limit=1, unit="s"))
    taken = min(_pyrite("wide") for _ in range(2))
    found.append(
        Reading(name="wide: total time per job", amount=taken / JOBS * 1e6, limit=100, unit="µs")
    )
    found.append(
        Reading(
            name="layered: memory of master and workers",
            amount=_memory("layered"),
            limit=500,
            unit="MB",
        )
    )
    return found


def _build_seconds(jobs: list[dict[str, object]], edges: list[dict[str, str]]) -> float:
    return seconds(lambda: Workload.from_table(jobs).validate(Schedule.from_table(edges)))


def _memory(shape: str) -> float:
    """The sum of the peak memory of all processes of a run, in MB."""
    jobs, edges = _tables(shape)
    peaks: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        run = Workload.from_table(jobs).run(
            Schedule.from_table(edges), workers=2, store=Path(folder, "run")
        )
        while not run.wait_for_master(0.05):
            for pid in _family(run.pid):
                peaks[pid] = max(peaks.get(pid, 0), _peak(pid))
    return sum(peaks.values()) / 2**20


def _family(pid: int) -> list[int]:
    """A process and its child processes."""
    found = [pid]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(path.parent.name))
    return found


def _peak(pid: int) -> int:
    """The peak memory of a process in bytes, including shared memory."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)
