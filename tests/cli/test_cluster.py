"""The commands that start members."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pyrite
from pyrite import AbstractProcessor, JobCancelled, JobFailed, ProcessorContext
from pyrite import processors as p
from pyrite.cli import app
from pyrite.wire.keys import new_secret
from tests.cluster.test_faults import has_ended
from tests.cluster.test_light_jobs import Where, straight
from tests.cluster.test_normal_jobs import descendants
from tests.redis_server import RedisServer

Command = subprocess.Popen[str]
ALONE = ("--listen", "127.0.0.1:5701", "--members", "127.0.0.1:5701")


@pytest.fixture
def started() -> Iterator[list[Command]]:
    commands: list[Command] = []
    yield commands
    for command in commands:
        command.kill()
        command.wait()
        assert command.stdout is not None
        command.stdout.close()


def start(started: list[Command], *arguments: str | Path) -> Command:
    command = subprocess.Popen(
        [sys.executable, "-m", "pyrite", *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )
    started.append(command)
    return command


def line_with(command: Command, words: str) -> str:
    assert command.stdout is not None
    return next(line for line in command.stdout if words in line)


def test_a_cluster_on_this_machine_serves_clients_until_it_is_told_to_end(
    started: list[Command], tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    command = start(started, "cluster", "--members", "2", "--secret-file", secret)
    (url,) = re.findall(r"pyrite://\S+", line_with(command, "members run at"))
    assert secret.stat().st_mode & 0o077 == 0
    with pyrite.client(url, secret=secret.read_text().strip()) as client:
        client.new_light_job(
            straight(Where, p.write_list("where"), distributed=False)
        ).execute().result(20)
        assert sorted(client.list("where")) == [0, 1]
    command.send_signal(signal.SIGTERM)
    assert command.wait(10) == 0


@pytest.mark.soak
def test_a_cluster_that_spark_hosts_serves_clients(started: list[Command], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    command = start(
        started,
        *("cluster", "--spark-master", "local[2]", "--members", "2", "--secret-file", secret),
    )
    (url,) = re.findall(r"pyrite://\S+", line_with(command, "members run at"))
    with pyrite.client(url, secret=secret.read_text().strip()) as client:
        client.map("m")[1] = 2
        assert client.map("m") == {1: 2}
    command.send_signal(signal.SIGTERM)
    assert command.wait(30) == 0


def free_addresses(count: int) -> list[str]:
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]
    for server in servers:
        server.close()
    return addresses


def test_members_with_a_fixed_list_find_each_other_and_end_well(
    started: list[Command], tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(new_secret())
    addresses = free_addresses(2)
    commands = [
        start(
            started,
            *("member", "--listen", address, "--members", ",".join(addresses)),
            *("--secret-file", tmp_path / "secret"),
        )
        for address in addresses
    ]
    for command in commands:
        line_with(command, "all members are connected")
    secret = (tmp_path / "secret").read_text()
    with pyrite.client("pyrite://" + ",".join(addresses), secret=secret) as client:
        client.map("m")[1] = 2
        assert client.map("m") == {1: 2}
    commands[1].send_signal(signal.SIGTERM)
    assert commands[1].wait(10) == 0
    line_with(commands[0], "a member was lost")


class Runs(AbstractProcessor):
    """Runs until the end of the job, and says when it has begun."""

    polls = True

    def init(self, context: ProcessorContext) -> None:
        self.begun = context.collections.list("begun")

    def complete(self) -> bool:
        if not self.begun:
            self.begun.append("once")
        return False


class Stuck(Runs):
    """Never comes back from a call."""

    cooperative = False

    def complete(self) -> bool:
        self.begun.append("stuck")
        threading.Event().wait()
        return True


@pytest.mark.parametrize("source", [Runs, Stuck])
def test_a_member_that_is_told_to_end_while_jobs_run_ends_them_abruptly_and_exits_well(
    started: list[Command], tmp_path: Path, source: type[AbstractProcessor]
) -> None:
    (address,) = free_addresses(1)
    secret = new_secret()
    (tmp_path / "secret").write_text(secret)
    arguments = ("--listen", address, "--members", address, "--secret-file", tmp_path / "secret")
    command = start(started, "member", *arguments)
    line_with(command, "all members are connected")
    with pyrite.client(f"pyrite://{address}", secret=secret) as client:
        executions = [client.new_light_job(straight(source)).execute() for _ in range(3)]
        give_up = time.monotonic() + 10
        while len(client.list("begun")) < (3 if source is Stuck else 1):
            assert time.monotonic() < give_up
        command.send_signal(signal.SIGTERM)
        for execution in executions:
            assert isinstance(execution.exception(3), (JobFailed, JobCancelled))
    assert command.wait(3) == 0


def test_a_member_runs_normal_jobs_on_its_master_and_ends_well_with_spark(
    started: list[Command], tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(new_secret())
    (address,) = free_addresses(1)
    command = start(
        started,
        *("member", "--listen", address, "--members", address, "--spark-master", "local[1]"),
        *("--secret-file", tmp_path / "secret"),
    )
    line_with(command, "all members are connected")
    secret = (tmp_path / "secret").read_text()
    with pyrite.client(f"pyrite://{address}", secret=secret) as client:
        client.new_job(straight(p.read_items([1, 2]), p.write_list("out"))).execute().result(100)
        assert sorted(client.list("out")) == [1, 2]
    of_spark = descendants(command.pid)
    assert of_spark
    command.send_signal(signal.SIGTERM)
    assert command.wait(30) == 0
    assert [each for each in of_spark if not has_ended(each, 10)] == []


def test_members_have_their_collections_in_a_redis(
    started: list[Command], tmp_path: Path, redis: RedisServer
) -> None:
    (tmp_path / "url").write_text(f"{redis.url}\n")
    (address,) = free_addresses(1)
    command = start(
        started,
        *("member", "--listen", address, "--members", address),
        *("--collections-file", tmp_path / "url"),
    )
    line_with(command, "all members are connected")
    with pyrite.client(f"pyrite://{address}") as client:
        client.map("m")[1] = 2
    with redis.client() as plain:
        assert plain.hlen("pyrite:map:m") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--collections", "redis://:secret@host", *ALONE), "use --collections-file"),
        (("--collections", "redis://h", "--collections-file", "f", *ALONE), "not both"),
        (("--collections-file", "none", *ALONE), "cannot be read"),
        (("--collections", "disk", *ALONE), "the URL of a Redis"),
        (("--listen", "nowhere", "--members", "nowhere"), "HOST:PORT"),
        (("--listen", "127.0.0.1:5", "--members", "127.0.0.1:6"), "must be in the list"),
        (("--listen", "10.0.0.1:5", "--members", "10.0.0.1:5"), "needs a secret"),
        (
            ("--listen", "127.0.0.1:5", "--members", "127.0.0.1:5", "--secret-file", "no"),
            "cannot be read",
        ),
    ],
)
def test_what_cannot_be_a_member_is_refused(arguments: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(app, ["member", *arguments])
    assert result.exit_code == 1
    assert message in result.output


def test_a_member_that_is_twice_in_the_list_is_refused_by_name() -> None:
    both = "127.0.0.1:5701,127.0.0.1:5702,127.0.0.1:5701"
    result = CliRunner().invoke(app, ["member", "--listen", "127.0.0.1:5702", "--members", both])
    assert result.exit_code == 1
    assert "127.0.0.1:5701 is 2 times in the list" in " ".join(result.output.split())


class Starts(AbstractProcessor):
    """Starts a program, ends it, and says of which signal."""

    cooperative = False

    def init(self, context: ProcessorContext) -> None:
        self.out = context.collections.list("ended")

    def complete(self) -> bool:
        program = subprocess.Popen(["sleep", "60"])
        program.terminate()
        self.out.append(program.wait(10))
        return True


def test_the_programs_that_processors_start_can_be_ended(started: list[Command]) -> None:
    (address,) = free_addresses(1)
    command = start(started, "member", "--listen", address, "--members", address)
    line_with(command, "all members are connected")
    with pyrite.client(f"pyrite://{address}") as client:
        client.new_light_job(straight(Starts)).execute().result(20)
        assert client.list("ended") == [-signal.SIGTERM]


def test_a_secret_that_can_be_written_nowhere_is_an_error_with_the_path(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "secret"
    result = CliRunner().invoke(app, ["cluster", "--secret-file", str(path)])
    assert result.exit_code == 1
    assert "cannot be read from" in result.output
    assert "No such file or directory" in " ".join(result.output.split())


def test_a_member_that_cannot_listen_says_so_and_leaves_the_signals_as_they_were() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with socket.create_server(("127.0.0.1", 0)) as used:
        address = f"127.0.0.1:{used.getsockname()[1]}"
        arguments = ["member", "--listen", address, "--members", address]
        result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "cannot listen there: Address already in use" in " ".join(result.output.split())
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
