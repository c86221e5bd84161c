"""Members that die, stop or are missing: their jobs fail with their name, the others go on."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import wait
from typing import Any

import pytest

from pyrite import DAG, AbstractProcessor, JobCancelled, JobFailed, PyriteError, between
from pyrite import processors as p
from pyrite.cluster import Client, LocalCluster
from pyrite.wire.keys import keys_from
from pyrite.wire.sockets import Limits
from tests.cluster.test_light_jobs import Endless, nothing_is_left, run, running, straight


@pytest.fixture
def trio() -> Iterator[LocalCluster]:
    with LocalCluster(members=3) as cluster:
        cluster.wait_until_complete()
        yield cluster


@pytest.mark.parametrize("killed", [1, 2])
def test_a_member_that_is_killed_fails_its_jobs_with_its_name_and_comes_back(
    trio: LocalCluster, killed: int
) -> None:
    with trio.client() as client:
        executions = [client.new_light_job(straight(Endless, p.noop())).execute() for _ in range(5)]
        assert len(client.light_jobs()) == 5
        pids, at = trio.pids, time.monotonic()
        os.kill(pids[killed], signal.SIGKILL)
        for execution in executions:
            with pytest.raises(JobFailed, match=trio.addresses[killed]):
                execution.result(5)
        assert time.monotonic() - at < 2
        assert nothing_is_left(client)
        wait_for_new_incarnation(trio, pids, killed)
        run(client, straight(p.read_items(range(100)), p.noop(), p.write_list("again")))
        assert sorted(client.list("again")) == list(range(100))
        assert [pid for i, pid in enumerate(trio.pids) if i != killed] == [
            pid for i, pid in enumerate(pids) if i != killed
        ]


def wait_for_new_incarnation(cluster: LocalCluster, pids: list[int], index: int) -> None:
    give_up = time.monotonic() + 10
    while cluster.pids[index] == pids[index]:
        assert time.monotonic() < give_up
        time.sleep(0.01)
    cluster.wait_until_complete()


def test_a_coordinator_that_is_killed_fails_its_jobs_and_the_client_goes_to_the_next(
    trio: LocalCluster,
) -> None:
    with trio.client() as client:
        execution = client.new_light_job(straight(Endless, p.noop())).execute()
        assert client.light_jobs() == [execution]
        assert execution.member == trio.addresses[0]
        pids = trio.pids
        os.kill(pids[0], signal.SIGKILL)
        with pytest.raises(JobFailed, match=f"{trio.addresses[0]}, its coordinator, was lost"):
            execution.result(5)
        with Client([trio.addresses[1]], keys_from(trio.secret)) as other:
            assert nothing_is_left(other)
        wait_for_new_incarnation(trio, pids, 0)
        again = client.new_light_job(straight(Endless, p.noop())).execute()
        assert running(client, 1) == [again]
        assert again.member == trio.addresses[1]


def test_a_light_job_of_another_client_fails_with_the_coordinator_that_was_lost(
    trio: LocalCluster,
) -> None:
    with (
        Client([trio.addresses[1]], keys_from(trio.secret)) as other,
        Client([trio.addresses[0]], keys_from(trio.secret)) as client,
    ):
        other.new_light_job(straight(Endless, p.noop())).execute()
        (found,) = running(client, 1)
        os.kill(trio.pids[1], signal.SIGKILL)
        with pytest.raises(PyriteError, match=f"{trio.addresses[1]} (was lost|is not)"):
            found.result(5)


def test_a_job_that_waits_for_a_connection_can_be_cancelled(trio: LocalCluster) -> None:
    with trio.client() as client:
        for pid in trio.pids:
            os.kill(pid, signal.SIGSTOP)
        client._connection = None  # as if the member were gone: the next does not answer
        execution = client.new_light_job(straight(Endless, p.noop())).execute()
        execution.cancel()
        assert isinstance(execution.exception(5), JobCancelled)


def test_a_kill_under_a_thousand_jobs_fails_them_within_seconds(trio: LocalCluster) -> None:
    with trio.client() as client:
        job = client.new_light_job(straight(Endless, p.noop()))
        executions = [job.execute() for _ in range(1000)]
        running(client, 1000)
        os.kill(trio.pids[1], signal.SIGKILL)
        assert not wait(executions, timeout=5).not_done
        assert all(trio.addresses[1] in str(each.exception()) for each in executions)
        assert nothing_is_left(client)


def test_a_missing_member_fails_a_job_at_once_with_its_name(trio: LocalCluster) -> None:
    with trio.client() as client:
        job = client.new_light_job(straight(p.read_items([1]), p.noop()))
        job.execute().result(5)
        os.kill(trio.pids[2], signal.SIGSTOP)
        os.kill(trio.pids[2], signal.SIGKILL)
        at = time.monotonic()
        failures = 0
        while not failures:
            assert time.monotonic() - at < 2
            error = job.execute().exception(5)
            if error is not None:
                assert trio.addresses[2] in str(error)
                failures += 1


def test_a_member_that_is_stopped_fails_its_jobs_at_the_limit_of_silence() -> None:
    limits = Limits(silence=1.2)
    with LocalCluster(members=2, limits=limits) as cluster, cluster.client() as client:
        execution = client.new_light_job(straight(Endless, p.noop())).execute()
        assert len(client.light_jobs()) == 1
        pid = cluster.pids[1]
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(JobFailed, match=cluster.addresses[1]):
            execution.result(5)
        os.kill(pid, signal.SIGCONT)


def test_a_member_ends_well_when_it_is_asked_to(trio: LocalCluster) -> None:
    file = os.pidfd_open(trio.pids[1])
    try:
        os.kill(trio.pids[1], signal.SIGTERM)
        assert select.select([file], [], [], 5)[0]
    finally:
        os.close(file)


def has_ended(process: int, seconds: float) -> bool:
    try:
        file = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([file], [], [], seconds)[0])
    finally:
        os.close(file)


class StartSleep(AbstractProcessor):
    """Emits the number of a process that it has started, and that would go on for long."""

    def complete(self) -> bool:
        self.emit(subprocess.Popen(["sleep", "1000"]).pid)
        return True


@pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
def test_what_a_member_has_started_ends_with_it(killed: bool) -> None:
    with LocalCluster(members=1) as cluster, cluster.client() as client:
        run(client, straight(StartSleep, p.write_list("pids")))
        (process,) = client.list("pids")
        if killed:
            os.kill(cluster.pids[0], signal.SIGKILL)
            assert has_ended(process, 5)
    assert has_ended(process, 5)


OWNER = """
import sys, threading
from pyrite.cluster import LocalCluster
cluster = LocalCluster(members=2)
print(*cluster.pids, flush=True)
threading.Event().wait()
"""


@pytest.mark.parametrize("stopped", [False, True], ids=["as they are", "while they are stopped"])
def test_members_end_with_their_owner_when_it_is_killed(stopped: bool) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    pids = [int(word) for word in owner.stdout.readline().split()]
    files = [os.pidfd_open(pid) for pid in pids]
    for pid in pids if stopped else ():
        os.kill(pid, signal.SIGSTOP)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    for file in files:
        assert select.select([file], [], [], 5)[0]
        os.close(file)


def test_the_secret_is_in_no_command_line_and_no_environment(cluster: LocalCluster) -> None:
    for pid in cluster.pids:
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{name}", "rb") as file:
                assert cluster.secret.encode() not in file.read()


class Right(AbstractProcessor):
    """Fails the job unless it gets exactly what the source has."""

    def __init__(self) -> None:
        self.got: Counter[tuple[str, int]] = Counter()

    def try_process_any(self, ordinal: int, item: Any) -> bool:
        self.got[item] += 1
        return True

    def complete(self) -> bool:
        expected = Counter({(f"w{n}", 100): 1 for n in range(20)})
        if self.got and self.got != expected:
            raise AssertionError(f"wrong: {self.got}")
        return True


def checked_word_count() -> DAG:
    dag = DAG()
    source = dag.vertex("source", p.read_items([f"w{n % 20}" for n in range(2000)]))
    count = dag.vertex("count", p.group_and_accumulate(lambda w: w, 0, lambda n, w: n + 1))
    right = dag.vertex("right", Right)
    dag.edge(between(source, count).distributed().partitioned(key=lambda w: w))
    dag.edge(between(count, right).distributed().all_to_one())
    return dag


def run_under_kills(seconds: float) -> Counter[str]:
    """Runs jobs while members are killed; says how they ended."""
    choice = random.Random(3)
    over = threading.Event()
    outcomes: Counter[str] = Counter()
    with LocalCluster(members=3) as cluster:
        addresses = cluster.addresses
        killer = threading.Thread(target=kill_at_random, args=(cluster, over, choice))
        with cluster.client() as client:
            job = client.new_light_job(checked_word_count())
            job.execute().result(10)
            killer.start()
            try:
                give_up = time.monotonic() + seconds
                while time.monotonic() < give_up:
                    executions = [job.execute() for _ in range(choice.randrange(1, 5))]
                    for execution in executions:
                        error = execution.exception(5)  # none hangs
                        if error is None:
                            outcomes["right"] += 1
                        else:
                            assert isinstance(error, JobFailed)
                            assert "wrong" not in str(error)
                            assert any(address in str(error) for address in addresses), error
                            outcomes["failed"] += 1
            finally:
                over.set()
                killer.join()
            cluster.wait_until_complete()
            give_up = time.monotonic() + 10
            while job.execute().exception(5) is not None:  # it comes back
                assert time.monotonic() < give_up
            assert nothing_is_left(client)
    return outcomes


def kill_at_random(cluster: LocalCluster, over: threading.Event, choice: random.Random) -> None:
    while not over.wait(choice.uniform(0.3, 1.5)):
        try:
            os.kill(choice.choice(cluster.pids), signal.SIGKILL)
        except ProcessLookupError:
            pass


@pytest.mark.soak
def test_under_random_kills_a_job_is_right_or_fails_with_the_members_name() -> None:
    outcomes = run_under_kills(6)
    assert outcomes["right"]
    assert outcomes["failed"]


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_under_random_kills_for_long() -> None:
    outcomes = run_under_kills(30)
    assert outcomes["right"]
    assert outcomes.total() >= 200
