"""Normal jobs through a client: a member runs them on Spark, and tells how they go and end."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from pyrite import (
    DAG,
    Instance,
    JobCancelled,
    JobConfig,
    JobFailed,
    JobStatus,
    PyriteError,
    between,
)
from pyrite import processors as p
from pyrite.cluster import Client, LocalCluster
from tests.cluster.test_faults import has_ended
from tests.cluster.test_light_jobs import straight

CONF = {"spark.ui.enabled": "false", "spark.driver.memory": "1g"}


@pytest.fixture(scope="module")
def spark_cluster() -> Iterator[LocalCluster]:
    with LocalCluster(members=2, spark_master="local[2, 4]", spark_conf=CONF) as cluster:
        yield cluster


@pytest.fixture
def client(spark_cluster: LocalCluster) -> Iterator[Client]:
    with spark_cluster.client() as client:
        for _, name, _ in client.collections():
            client.map(name).clear()
            client.list(name).clear()
        yield client


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the clusters are shared by several tests, so their threads stay."""


def word_count() -> DAG:
    dag = DAG()
    words = dag.vertex("words", p.read_items([f"word{n % 50}" for n in range(20_000)]))
    count = dag.vertex("count", p.group_and_accumulate(lambda word: word, 0, lambda n, word: n + 1))
    sink = dag.vertex("sink", p.write_map("counts"))
    dag.edge(between(words, count).distributed().partitioned(key=lambda word: word))
    dag.edge(between(count, sink))
    return dag


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


class Gate:
    """A function that says which process runs it, and waits until it may go on."""

    def __init__(self, folder: Path) -> None:
        self._started, self._open = folder / "started", folder / "open"

    def __call__(self, item: Any) -> Any:
        (self._started / str(os.getpid())).mkdir(parents=True, exist_ok=True)
        while not self._open.exists():
            time.sleep(0.01)
        return item

    def worker(self) -> int:
        """The process that runs it, once one does."""
        until(self._started.exists)
        until(lambda: any(self._started.iterdir()))
        return int(next(self._started.iterdir()).name)

    def open(self) -> None:
        self._open.touch()


def gated(gate: Gate) -> DAG:
    return straight(p.read_items([1, 2, 3]), p.map(gate), p.write_list("out"), distributed=False)


def test_named_collections_of_the_cluster_are_read_and_written(client: Client) -> None:
    client.map("prices").update({n: 10 * n for n in range(40)})
    dag = straight(p.read_map("prices"), p.map(lambda pair: pair[1]), p.write_list("out"))
    client.new_job(dag).execute().result(60)
    assert sorted(client.list("out")) == [10 * n for n in range(40)]


def test_a_word_count_gives_what_an_instance_gives(client: Client, local_spark: Instance) -> None:
    execution = client.new_job(word_count(), JobConfig(name="words")).execute()
    assert execution.result(60) is None
    assert execution.status is JobStatus.COMPLETED
    local_spark.new_job(word_count()).execute().result(60)
    assert dict(client.map("counts")) == dict(local_spark.map("counts"))


def test_status_progress_metrics_members_and_timings_come_from_the_member(
    client: Client, spark_cluster: LocalCluster, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    execution = client.new_job(gated(gate), JobConfig(members=2)).execute()
    gate.worker()
    until(lambda: execution.status is JobStatus.RUNNING)
    until(lambda: bool(execution.progress()))
    assert execution.progress() == [("v0 + v1 + v2", 0, 2)]
    assert execution.member == spark_cluster.addresses[0]
    until(lambda: bool(execution.members()))
    assert all(member["memory_bytes"] > 1 << 20 for member in execution.members())
    gate.open()
    execution.result(60)
    assert execution.metrics()["v2"]["received"] == 3
    assert set(execution.timings()) == {"session", "stages", "commit"}


def test_a_cancel_stops_it_within_three_seconds_and_commits_nothing(
    client: Client, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    execution = client.new_job(gated(gate)).execute()
    gate.worker()
    at = time.monotonic()
    assert execution.cancel()
    with pytest.raises(JobCancelled):
        execution.result(10)
    assert time.monotonic() - at < 3
    assert execution.cancelled()
    client.new_job(straight(p.read_items([7]), p.write_list("out"))).execute().result(60)
    assert list(client.list("out")) == [7]


def test_a_cancel_right_after_the_submit_is_not_lost(client: Client) -> None:
    job = client.new_job(straight(p.read_items([1]), p.write_list("out")))
    executions = [job.execute() for _ in range(5)]
    for execution in executions:
        execution.cancel()
    assert all(isinstance(each.exception(30), JobCancelled) for each in executions)
    assert list(client.list("out")) == []


def test_a_failure_names_the_job_the_member_the_vertex_and_the_item(
    client: Client, spark_cluster: LocalCluster
) -> None:
    dag = straight(p.read_items([1, 0]), p.map(lambda n: 1 // n), p.write_list("out"))
    with pytest.raises(
        JobFailed, match=r"job 'ratio' on member .* failed in vertex 'v1'"
    ) as failed:
        client.new_job(dag, JobConfig(name="ratio")).execute().result(60)
    assert spark_cluster.addresses[0] in str(failed.value)
    assert (failed.value.vertex, failed.value.item) == ("v1", 0)
    assert isinstance(failed.value.__cause__, ZeroDivisionError)


def test_what_cannot_be_pickled_is_refused_with_the_vertex(client: Client) -> None:
    lock = threading.Lock()
    with pytest.raises(PyriteError, match="vertex 'v1'"):
        client.new_job(straight(p.read_items([1]), p.map(lambda n: (n, lock))))


def test_a_restored_job_can_be_executed(client: Client) -> None:
    job = client.new_job(straight(p.read_items([1]), p.write_list("out")))
    client.execute(cloudpickle.loads(cloudpickle.dumps(job))).result(60)
    assert list(client.list("out")) == [1]


def test_modules_and_files_are_read_where_the_client_is(client: Client, tmp_path: Path) -> None:
    source = tmp_path / "of_the_client.py"
    source.write_text("def double(n):\n    return 2 * n\n")
    spec = importlib.util.spec_from_file_location("of_the_client", source)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["of_the_client"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        job = client.new_job(
            straight(p.read_items([1, 2]), p.map(module.double), p.write_list("out")),
            JobConfig(modules=[module]),
        )
    finally:
        del sys.modules["of_the_client"]
    source.unlink()
    job.execute().result(60)
    assert sorted(client.list("out")) == [2, 4]


def test_a_client_that_closes_cancels_its_job(
    spark_cluster: LocalCluster, client: Client, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    with spark_cluster.client() as other:
        execution = other.new_job(gated(gate)).execute()
        worker = gate.worker()
    assert execution.cancelled()
    assert has_ended(worker, 10)
    assert list(client.list("out")) == []


CLIENT = """
import sys, threading
from pathlib import Path
import pyrite
from tests.cluster.test_normal_jobs import Gate, gated
client = pyrite.client(sys.argv[1], secret=sys.stdin.readline().strip())
client.new_job(gated(Gate(Path(sys.argv[2])))).execute()
threading.Event().wait()
"""


def test_a_client_that_is_killed_has_its_job_cancelled(
    spark_cluster: LocalCluster, client: Client, tmp_path: Path
) -> None:
    url = f"pyrite://{spark_cluster.addresses[0]}"
    other = subprocess.Popen(
        [sys.executable, "-c", CLIENT, url, tmp_path], stdin=subprocess.PIPE, text=True
    )
    assert other.stdin is not None
    print(spark_cluster.secret, file=other.stdin, flush=True)
    worker = Gate(tmp_path).worker()
    other.kill()
    other.communicate()
    assert has_ended(worker, 10)
    assert list(client.list("out")) == []


def descendants(process: int) -> list[int]:
    children = [
        int(child)
        for task in Path(f"/proc/{process}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
    return children + [each for child in children for each in descendants(child)]


def test_a_member_that_is_killed_takes_spark_along_and_fails_its_job_with_its_name(
    tmp_path: Path,
) -> None:
    gate = Gate(tmp_path)
    with LocalCluster(members=2, spark_master="local[1]", spark_conf=CONF) as cluster:
        address, member = cluster.addresses[0], cluster.pids[0]
        with cluster.client() as client:
            execution = client.new_job(gated(gate), JobConfig(name="gated")).execute()
            assert execution.status is JobStatus.STARTING  # Spark takes seconds to start
            worker = gate.worker()
            processes = descendants(member)
            assert worker in processes
            at = time.monotonic()
            os.kill(member, signal.SIGKILL)
            with pytest.raises(JobFailed, match=f"job 'gated' failed: member {address}, which ran"):
                execution.result(5)
            assert time.monotonic() - at < 2
            assert execution.metrics() == {}
            assert [each for each in processes if not has_ended(each, 10)] == []


def test_a_master_that_is_none_fails_the_job_with_a_sentence() -> None:
    with LocalCluster(members=1, spark_master="locl[2]") as cluster, cluster.client() as client:
        execution = client.new_job(word_count()).execute()
        with pytest.raises(JobFailed, match=r"'locl\[2\]' is not the address of a Spark master"):
            execution.result(20)


def test_results_of_executions_at_once_are_all_right(client: Client) -> None:
    job = client.new_job(straight(p.read_items(range(100)), p.write_list("out")))
    for execution in [job.execute() for _ in range(3)]:
        execution.result(60)
    assert Counter(client.list("out")) == Counter([*range(100)] * 3)
