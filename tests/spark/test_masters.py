"""The same jobs on every kind of Spark: executors in processes of their own, a standalone master,
and Spark Connect."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.redis_server import RedisServer

pytestmark = pytest.mark.timeout(240)  # each test starts a Spark of its own, in several processes

SPARK_HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_HOME": str(SPARK_HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
}


def run_jobs(master: str) -> None:
    run_program("tests.spark.on_master", master, says=f"all good on {master}")


def run_program(*arguments: str, says: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        env=ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=220,
        check=False,
    )
    assert says in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]


@contextmanager
def server(log: Path, says: str, *arguments: str) -> Iterator[str]:
    """Runs a server inside the `with` block. Waits until its output matches the pattern, and yields
    the group of the match."""
    with open(log, "w") as output:
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), *arguments],
            env=ENVIRONMENT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + 60
        while (found := re.search(says, log.read_text())) is None:
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.1)  # the server gives no event to wait for
        yield found.group(1)
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.soak  # the test of a lost executor runs on such a cluster, too
def test_executors_in_processes_of_their_own() -> None:
    run_jobs("local-cluster[2,1,1024]")


def test_an_executor_that_is_lost_after_a_part_of_its_output_was_read_leaves_an_exact_result() -> (
    None
):
    run_program("tests.spark.on_lost_executor", "memory", says="all good")


@pytest.mark.soak
def test_an_executor_that_is_lost_leaves_an_exact_result_in_redis(redis: RedisServer) -> None:
    run_program("tests.spark.on_lost_executor", redis.url, says="all good")
    with redis.client() as client:
        found: Any = client.keys()
        assert set(found) == {b"pyrite:list:out", b"pyrite:list:seen"}


@pytest.mark.soak
def test_a_standalone_master_with_a_worker(tmp_path: Path) -> None:
    package = "org.apache.spark.deploy"
    master_arguments = (
        f"{package}.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--webui-port",
        "0",
    )
    with server(
        tmp_path / "master", r"Starting Spark master at (spark://\S+)", *master_arguments
    ) as master:
        worker_arguments = (
            f"{package}.worker.Worker",
            "--cores",
            "2",
            "--memory",
            "1g",
            "--webui-port",
            "0",
            master,
        )
        with server(
            tmp_path / "worker",
            r"(Successfully registered)",
            *worker_arguments,
            "--work-dir",
            str(tmp_path / "work"),
        ):
            run_jobs(master)


@pytest.fixture
def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_spark_connect(tmp_path: Path, free_port: int) -> None:
    arguments = (
        "org.apache.spark.deploy.SparkSubmit",
        "--master",
        "local[2, 4]",
        "--conf",
        f"spark.connect.grpc.binding.port={free_port}",
        "--conf",
        "spark.ui.enabled=false",
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
        "spark-internal",
    )
    with server(tmp_path / "connect", r"(Spark Connect server started)", *arguments):
        run_jobs(f"sc://127.0.0.1:{free_port}")
