"""A program that runs jobs which reach a limit of Spark: of memory, of the driver, of an
executor."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pyrite
from pyrite import Instance, JobConfig, JobFailed
from pyrite import processors as p
from pyrite.processors.loops.chain import StepSupplier
from tests.engine.test_fusion import line
from tests.spark.checking import run_checks

CONF = {
    "spark.ui.enabled": "false",
    "spark.executor.memory": "512m",
    "spark.driver.maxResultSize": "1m",
    "spark.executor.pyspark.memory": "700m",
    "spark.task.maxFailures": "1",
}


def ours(master: str) -> Instance:
    return pyrite.instance(spark_master=master, spark_conf=CONF)


def failed(pyr: Instance, *steps: StepSupplier) -> JobFailed:
    error = pyr.new_job(line(*steps), JobConfig(members=1)).execute().exception(100)
    assert isinstance(error, JobFailed)
    assert len(str(error)) < 600, error
    return error


def too_much_for_the_driver() -> None:
    with ours("local[1]") as pyr:
        large = p.map(lambda n: bytes(1 << 19) + bytes([n]))
        said = str(failed(pyr, p.read_items(range(8)), large, p.write_list("out")))
    assert "is larger than spark.driver.maxResultSize (1024.0 KiB). write_list and" in said, said


def too_much_for_a_worker() -> None:
    with ours("local[1]") as pyr:
        error = failed(pyr, p.read_items([3]), p.map(lambda n: len(bytearray(1 << 33))))
    assert (error.vertex, error.item) == ("b", 3)
    assert isinstance(error.__cause__, MemoryError)
    assert "Spark limits this Python worker to 700 MiB (spark.executor.pyspark" in str(error)


def kill_executor(n: int) -> int:
    daemon = Path(f"/proc/{os.getppid()}/stat").read_text()  # its parent is the executor
    os.kill(int(daemon.rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
    signal.pause()
    return n


def executor_that_dies() -> None:
    with ours("local-cluster[1,1,1024]") as pyr:
        said = str(failed(pyr, p.read_items([1]), p.map(kill_executor)))
    assert "executor 0 was lost while it ran stage 'a + b': " in said, said
    assert "spark.executor.memoryOverhead" in said, said


CHECKS = [too_much_for_the_driver, too_much_for_a_worker, executor_that_dies]

if __name__ == "__main__":
    run_checks(CHECKS)
