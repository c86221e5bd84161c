"""Clients that come and go: members keep nothing of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from pyrite import Execution, JobCancelled, JobFailed, PyriteError
from pyrite import processors as p
from pyrite.cluster import Client, LocalCluster
from pyrite.wire import messages as m
from tests.cluster.test_light_jobs import Endless, nothing_is_left, run, running, straight

CLIENT = """
import sys, threading
from pyrite.cluster import Client
from pyrite.wire.keys import keys_from
from tests.cluster.test_light_jobs import Endless, straight
from pyrite import processors as p
client = Client([sys.argv[1]], keys_from(sys.stdin.readline().strip()))
for _ in range(3):
    client.new_light_job(straight(Endless, p.noop())).execute()
print("submitted", flush=True)
threading.Event().wait()
"""


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_a_client_that_is_killed_cancels_its_jobs(cluster: LocalCluster, client: Client) -> None:
    for address in cluster.addresses:
        other = subprocess.Popen(
            [sys.executable, "-c", CLIENT, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with other:
            assert other.stdin is not None
            print(cluster.secret, file=other.stdin, flush=True)
            running(client, 3)
            other.kill()
        assert nothing_is_left(client)


def test_many_short_lived_clients_leave_no_open_files(cluster: LocalCluster) -> None:
    def come_and_go(times: int) -> None:
        for _ in range(times):
            with cluster.client() as client:
                run(client, straight(p.read_items([1]), p.noop()))

    come_and_go(3)
    before = [open_files(pid) for pid in cluster.pids]
    come_and_go(20)
    give_up = time.monotonic() + 5
    while any(now > then + 2 for now, then in zip(map(open_files, cluster.pids), before)):
        assert time.monotonic() < give_up, (before, [*map(open_files, cluster.pids)])


@pytest.mark.parametrize("connected", [True, False])
def test_a_client_that_is_closed_while_a_call_waits_fails_the_call(connected: bool) -> None:
    with LocalCluster(members=1) as cluster:
        client = cluster.client()
        (pid,) = cluster.pids
        os.kill(pid, signal.SIGSTOP)
        if not connected:
            client._connection = None  # as after a loss: it dials, and nobody answers
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(client.map("m").copy)
            give_up = time.monotonic() + 5
            while not client._calls._waiting and not client._waiting:
                assert time.monotonic() < give_up
            client.close()
            with pytest.raises(PyriteError, match="this client is closed"):
                waiting.result(5)
        os.kill(pid, signal.SIGCONT)


def test_a_cancel_of_another_clients_job_counts_though_the_client_is_closed_at_once(
    cluster: LocalCluster, client: Client
) -> None:
    for _ in range(5):
        execution = client.new_light_job(straight(Endless, p.noop())).execute()
        with cluster.client() as other:
            (found,) = running(other, 1)
            found.cancel()
        with pytest.raises(JobCancelled):
            execution.result(5)


def test_an_answer_that_a_client_cannot_read_fails_its_job(client: Client) -> None:
    execution = client.new_light_job(straight(Endless, p.noop())).execute()
    answer = m.Answer(bytes.fromhex(execution.id), b"nonsense")
    client._post(lambda: client._answered(answer))
    with pytest.raises(JobFailed, match="its outcome cannot be read here"):
        execution.result(5)


def test_a_client_keeps_only_the_dags_of_jobs_that_run(client: Client) -> None:
    endless = client.new_light_job(straight(Endless, p.noop())).execute()
    for number in range(3):
        run(client, straight(p.read_items([number]), p.noop()))
    assert list(client._packed) == [bytes.fromhex(endless.id)]


def test_a_job_that_was_not_sent_when_the_member_is_lost_goes_to_the_next(client: Client) -> None:
    job = client.new_light_job(straight(p.read_items([1]), p.noop()))
    executions: Future[Execution] = Future()

    def lose() -> None:
        executions.set_result(job.execute())  # it is posted, behind this
        assert client._connection is not None
        client._lost(client._connection, "it was cut")

    client._post(lose)
    executions.result(5).result(5)
