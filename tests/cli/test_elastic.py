"""Members that come and go: programs that find each other in a real ZooKeeper."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from typer.testing import CliRunner

import pyrite
from pyrite import DAG, AbstractProcessor, JobFailed, PyriteError, between
from pyrite import processors as p
from pyrite.cli import app
from pyrite.cluster import Client
from tests.cli.test_cluster import Command, free_addresses, line_with, start
from tests.cluster.test_faults import checked_word_count
from tests.cluster.test_light_jobs import Endless, running, straight
from tests.zookeeper import ZooKeeper

NODES = "/pyrite/c/member"


class Pids(AbstractProcessor):
    """Emits the number of its process."""

    def complete(self) -> bool:
        self.emit(os.getpid())
        return True


class Cluster:
    """The members that a test starts, and the server that they meet at."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.zookeeper = ZooKeeper(folder, **options)
        self._folder = folder
        self._runs = 0
        self.commands: list[Command] = []

    def member(self, address: str | None = None) -> tuple[str, Command]:
        """Starts a member, and does not wait for it."""
        listen = address or free_addresses(1)[0]
        options = ("--listen", listen, "--zookeeper", self.zookeeper.address, "--cluster", "c")
        return listen, start(self.commands, "member", *options)

    def members(self, count: int) -> tuple[list[str], list[Command]]:
        """Starts members, and waits until they know each other."""
        started = [self.member() for _ in range(count)]
        addresses, commands = map(list, zip(*started))
        for command in commands:
            line_with(command, has(count))
        return addresses, commands

    def pids(self, client: Client) -> set[int]:
        """Runs a job that sends something from each of its members to one of them."""
        self._runs += 1
        folder = self._folder / f"run{self._runs}"
        folder.mkdir()
        dag = DAG()
        pids = dag.vertex("pids", Pids, local_parallelism=1)
        note = dag.vertex("note", p.filter(lambda pid: bool((folder / str(pid)).touch())))
        dag.edge(between(pids, note).distributed().all_to_one())
        client.new_light_job(dag).execute().result(20)
        return {int(file.name) for file in folder.iterdir()}

    @contextmanager
    def kazoo(self) -> Iterator[Any]:
        """A look into ZooKeeper."""
        kazoo = KazooClient(self.zookeeper.address)
        kazoo.start()
        try:
            yield kazoo
        finally:
            kazoo.stop()
            kazoo.close()

    def close(self) -> None:
        for command in self.commands:
            command.kill()
            command.wait()
            assert command.stdout is not None
            command.stdout.close()
        self.zookeeper.kill()


def has(count: int) -> str:
    return f"cluster 'c' has {count} member"


MakeCluster = Callable[..., Cluster]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeCluster]:
    with ExitStack() as closing:

        def make(*, started: bool = True, **options: Any) -> Cluster:
            cluster = Cluster(tmp_path, **options)
            closing.callback(cluster.close)
            if started:
                cluster.zookeeper.start()
            return cluster

        yield make


@pytest.fixture
def cluster(make: MakeCluster) -> Cluster:
    return make()


@contextmanager
def client(*addresses: str) -> Iterator[Client]:
    with pyrite.client("pyrite://" + ",".join(addresses)) as client:
        yield client


def until(is_so: Callable[[], bool], seconds: float = 30) -> None:
    """Waits for what other processes do and nobody tells us."""
    give_up = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_a_member_that_joins_serves_new_jobs_and_one_that_leaves_does_not(
    make: MakeCluster,
) -> None:
    cluster = make(session=20)  # so that no session expires by itself
    (first, _), (a, b) = cluster.members(2)
    with client(first) as jobs:
        assert cluster.pids(jobs) == {a.pid, b.pid}
        _, third = cluster.member()
        for command in (a, b, third):
            line_with(command, has(3))
        assert cluster.pids(jobs) == {a.pid, b.pid, third.pid}
        third.send_signal(signal.SIGTERM)
        assert third.wait(10) == 0
        with cluster.kazoo() as kazoo:
            assert len(kazoo.get_children(NODES)) == 2
        line_with(a, has(2))
        assert cluster.pids(jobs) == {a.pid, b.pid}


def test_a_member_that_is_killed_fails_its_jobs_and_comes_back_at_its_address(
    make: MakeCluster,
) -> None:
    cluster = make(session=20)  # so that the node of the one that is killed stays
    (first, second, _), (a, b, c) = cluster.members(3)
    with client(first) as jobs:
        execution = jobs.new_light_job(straight(Endless, p.noop())).execute()
        running(jobs, 1)
        at = time.monotonic()
        b.kill()
        with pytest.raises(JobFailed, match=second):
            execution.result(5)
        assert time.monotonic() - at < 2
        assert cluster.pids(jobs) == {a.pid, c.pid}
        _, again = cluster.member(second)
        for command in (a, c, again):
            line_with(command, has(3))
        assert cluster.pids(jobs) == {a.pid, c.pid, again.pid}
        with cluster.kazoo() as kazoo:
            assert len(kazoo.get_children(NODES)) == 3


@pytest.mark.soak
def test_jobs_go_on_while_zookeeper_is_gone_and_a_member_can_join_when_it_is_back(
    cluster: Cluster,
) -> None:
    (first, _), commands = cluster.members(2)
    pids = {command.pid for command in commands}
    with client(first) as jobs:
        execution = jobs.new_light_job(straight(Endless, p.noop())).execute()
        cluster.zookeeper.kill()
        for command in commands:
            line_with(command, "waiting for ZooKeeper")
        assert cluster.pids(jobs) == pids
        cluster.zookeeper.start()
        _, third = cluster.member()
        line_with(third, has(3))
        until(lambda: cluster.pids(jobs) == {*pids, third.pid})
        with cluster.kazoo() as kazoo:
            assert len(kazoo.get_children(NODES)) == 3
        assert not execution.done()


@pytest.mark.soak
def test_a_member_that_hangs_is_left_out_when_its_session_expires_and_registers_anew(
    cluster: Cluster,
) -> None:
    (first, _), (a, b) = cluster.members(2)
    with client(first) as jobs, cluster.kazoo() as kazoo:
        before = set(kazoo.get_children(NODES))
        b.send_signal(signal.SIGSTOP)
        line_with(a, has(1))
        assert cluster.pids(jobs) == {a.pid}
        b.send_signal(signal.SIGCONT)
        line_with(a, has(2))
        assert cluster.pids(jobs) == {a.pid, b.pid}
        after = set(kazoo.get_children(NODES))
        assert len(after) == 2
        assert len(after - before) == 1


def test_a_member_waits_for_zookeeper_and_takes_no_job_before(make: MakeCluster) -> None:
    cluster = make(started=False)
    address, command = cluster.member()
    line = line_with(command, f"waiting for ZooKeeper at {cluster.zookeeper.address}")
    assert "Connection refused" in line
    with client(address) as jobs:
        with pytest.raises(JobFailed, match="has not joined cluster 'c' yet: it waits for Zoo"):
            cluster.pids(jobs)
        cluster.zookeeper.start()
        line_with(command, has(1))
        assert cluster.pids(jobs) == {command.pid}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_member_that_waits_for_zookeeper_can_be_ended(
    make: MakeCluster, number: signal.Signals
) -> None:
    _, command = make(started=False).member()
    line_with(command, "waiting for ZooKeeper")
    command.send_signal(number)
    assert command.wait(10) == 0


def test_a_member_ends_well_while_zookeeper_hangs(cluster: Cluster) -> None:
    _, (command,) = cluster.members(1)
    cluster.zookeeper.suspend()
    command.send_signal(signal.SIGTERM)
    assert command.wait(10) == 0


def refusal(cluster: Cluster, jobs: Client) -> str:
    with pytest.raises(JobFailed) as caught:
        cluster.pids(jobs)
    return str(caught.value)


def test_a_member_is_used_only_when_it_is_connected_to_all_that_were_there_before(
    cluster: Cluster,
) -> None:
    with cluster.kazoo() as kazoo:
        (nobody,) = free_addresses(1)
        node = f"{NODES}/00@{nobody}-"
        node = kazoo.create(node, ephemeral=True, sequence=True, makepath=True)
        address, command = cluster.member()
        until(lambda: len(kazoo.get_children(NODES)) == 2)
        with client(address) as jobs:
            until(lambda: f"it is not connected to {nobody} yet" in refusal(cluster, jobs))
            kazoo.delete(node)
            line_with(command, has(1))
            assert cluster.pids(jobs) == {command.pid}


def test_a_member_ends_with_a_message_when_another_takes_its_address(
    cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    (address,), (command,) = cluster.members(1)
    with cluster.kazoo() as kazoo:
        kazoo.create(f"{NODES}/00@{address}-", ephemeral=True, sequence=True)
        assert command.wait(10) == 1
    assert f"another process has joined cluster 'c' as member {address}" in capfd.readouterr().err


def test_named_maps_and_lists_are_refused_with_what_to_do(cluster: Cluster) -> None:
    addresses, _ = cluster.members(1)
    with client(*addresses) as jobs:
        with pytest.raises(PyriteError, match="--collections redis://"):
            jobs.map("m")[1] = 2
        with pytest.raises(JobFailed, match="--collections redis://"):
            jobs.new_light_job(straight(p.read_items([1]), p.write_list("l"))).execute().result(9)


HERE = ("member", "--listen", "127.0.0.1:5")
AT = ("--zookeeper", "127.0.0.1:6")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--members", "127.0.0.1:5", *AT, "--cluster", "c"), "either --members"),
        ((), "either --members"),
        (AT, "--zookeeper and --cluster belong together"),
        (("--members", "127.0.0.1:5", "--cluster", "c"), "belong together"),
        ((*AT, "--cluster", "a/b"), "the name of a cluster has letters"),
        (("--zookeeper", "nowhere", "--cluster", "c"), "a ZooKeeper server is HOST:PORT"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, [*HERE, *arguments])
    assert result.exit_code != 0
    assert message in " ".join(result.output.replace("│", "").split())


def test_without_the_extra_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    result = CliRunner().invoke(app, [*HERE, *AT, "--cluster", "c"])
    assert result.exit_code == 1
    assert "pip install 'pyrite[durable]'" in " ".join(result.output.split())


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_while_members_and_zookeeper_come_and_go_a_job_is_right_or_fails_with_a_name(
    cluster: Cluster,
) -> None:
    addresses, _ = cluster.members(3)
    by_address = dict(zip(addresses, cluster.commands))
    over = threading.Event()
    disturbing = threading.Thread(target=disturb, args=(cluster, by_address, over))
    disturbing.start()
    outcomes: Counter[str] = Counter()
    try:
        with client(*addresses) as jobs:
            job = jobs.new_light_job(checked_word_count())
            give_up = time.monotonic() + 60
            while time.monotonic() < give_up:
                error = job.execute().exception(5)  # none hangs
                assert error is None or any(address in str(error) for address in addresses), error
                assert error is None or isinstance(error, JobFailed)
                assert "wrong" not in str(error)
                outcomes["right" if error is None else "failed"] += 1
            over.set()
            disturbing.join()
            for address in addresses:
                if by_address[address].poll() is not None:
                    _, by_address[address] = cluster.member(address)
            pids = {command.pid for command in by_address.values()}
            until(lambda: cluster.pids(jobs) == pids)
    finally:
        over.set()
        disturbing.join()
    assert outcomes["right"] > outcomes["failed"] > 0, outcomes


def disturb(cluster: Cluster, by_address: dict[str, Command], over: threading.Event) -> None:
    """Kills members and starts them again at once or later; kills ZooKeeper now and then. The first
    member stays, so that there is always one to be asked."""
    choice = random.Random(5)
    addresses = list(by_address)
    while not over.wait(choice.uniform(0.1, 1.5)):
        what = choice.choice(("kill", "end", "start", "start", "zookeeper"))
        address = choice.choice(addresses[1:])
        if what == "zookeeper":
            cluster.zookeeper.kill()
            over.wait(choice.choice((0, 3)))
            cluster.zookeeper.start()
        elif what == "start" and by_address[address].poll() is not None:
            _, by_address[address] = cluster.member(address)
        elif what != "start" and by_address[address].poll() is None:
            by_address[address].send_signal(signal.SIGKILL if what == "kill" else signal.SIGTERM)
            by_address[address].wait()
