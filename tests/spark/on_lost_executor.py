"""A program that runs a job and kills an executor after a part of its output was read. The result
must still be exact. Its argument is where the named lists are.

One task of the last stage waits until the others have completed and their executor is killed, and
then fails. When Spark runs it again, it must compute half of the earlier stages again.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyrite
from pyrite import DAG, JobConfig, between, from_
from pyrite import processors as p

ITEMS = 20_000
CONF = {"spark.ui.enabled": "false", "spark.executor.memory": "512m"}


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 150
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)  # another process sets the condition, so there is no event to wait for


def in_last_stage(folder: Path) -> Callable[[int], int]:
    def step(n: int) -> int:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        if task.partitionId() == 0 and not (folder / "first").exists():
            # The executor is the parent of the daemon that forks workers.
            with open(f"/proc/{os.getppid()}/stat") as file:
                (folder / "pid").write_text(file.read().rsplit(")", 1)[1].split()[1])
            (folder / "pid").rename(folder / "first")
        elif task.partitionId() == 1 and not (folder / "failed").exists():
            wait_for((folder / "gone").exists)
            (folder / "failed").touch()
            raise RuntimeError("only once")
        return n

    return step


def main(collections: str) -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        pyrite.instance(
            spark_master="local-cluster[2,1,1024]", spark_conf=CONF, collections=collections
        ) as pyr,
    ):
        folder = Path(name)
        dag = DAG()
        source, middle = (
            dag.vertex("source", p.read_items(range(ITEMS))),
            dag.vertex("middle", p.map(lambda n: n)),
        )
        last, sink = (
            dag.vertex("last", p.map(in_last_stage(folder))),
            dag.vertex("sink", p.write_list("out")),
        )
        dag.edge(between(source, middle).distributed().partitioned()).edge(
            between(middle, last).distributed()
        )
        dag.edge(between(last, sink))
        seen = dag.vertex("seen", p.write_list("seen"))
        dag.edge(from_(middle, 1).to(seen))
        execution = pyr.new_job(dag, JobConfig(members=4)).execute()
        wait_for(
            lambda: execution.done() or [done for _, done, _ in execution.progress()][2:] == [3]
        )
        os.kill(int((folder / "first").read_text()), signal.SIGKILL)
        (folder / "gone").touch()
        execution.result(90)
        assert (folder / "failed").exists()
        for written in ("out", "seen"):
            counts = Counter(pyr.list(written))
            wrong = {n: counts[n] for n in range(ITEMS) if counts[n] != 1}
            assert not wrong, f"{len(wrong)} of {ITEMS} items are lost or there twice"
    print("all good")


if __name__ == "__main__":
    main(sys.argv[1])
