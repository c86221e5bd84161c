"""Counts words with a durable job, in a folder. In the middle of it a peer, the coordinator and the
program itself are killed. A second program opens the folder, and the counts are exact."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyrite
from pyrite import DAG, JobConfig, between
from pyrite import processors as p

LINES = ["the quick brown fox", "jumps over the lazy dog", "the end"] * 20_000


def counting(half: Path) -> DAG:
    """A DAG that counts words, and makes the file `half` when it has seen half of the lines."""

    def words(numbered: tuple[int, str]) -> Iterator[str]:
        number, line = numbered
        if number == len(LINES) // 2:
            half.touch()
            time.sleep(0.2)  # the kills come now
        yield from line.split()

    dag = DAG()
    lines = dag.vertex("lines", p.read_items(enumerate(LINES)))
    split = dag.vertex("split", p.flat_map(words))
    count = dag.vertex(
        "count",
        p.group_and_accumulate(key=lambda w: w, initial=0, accumulate=lambda n, word: n + 1),
    )
    sink = dag.vertex("sink", p.write_map("counts"))
    dag.edge(between(lines, split))
    dag.edge(between(split, count).distributed().partitioned(key=lambda word: word))
    dag.edge(between(count, sink))
    return dag


def begin(folder: Path) -> None:
    """Submits the job, and dies in the middle of it."""
    half = folder / "half"
    pyr = pyrite.instance(durable=folder, peers=2)
    pyr.new_durable_job(counting(half), JobConfig(name="count words", members=2)).execute()
    while not half.exists():
        time.sleep(0.01)
    pids = dict(pyr.processes())  # the role and the process: one of the peers, and the coordinator
    os.kill(pids["peer"], signal.SIGKILL)
    os.kill(pids["coordinator"], signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)  # its other processes end with it


def finish(folder: Path) -> None:
    """Opens the folder again: jobs that have not ended go on."""
    with pyrite.instance(durable=folder, peers=2) as pyr:
        [execution] = pyr.jobs()
        print(f"{execution.job.name} is there")
        execution.result()
        counts = pyr.map("counts")
        print(f"{sum(counts.values())} words, {counts['the']} times 'the'")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        begin(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as made:
        first = subprocess.run([sys.executable, __file__, made], check=False)
        print(f"the first program was killed: {first.returncode == -signal.SIGKILL}")
        finish(Path(made))
