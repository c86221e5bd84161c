"""Persistent workers that a launcher starts: what they do, who may be one, who dies with whom."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

import pyrite
from pyrite import PyriteError
from pyrite.version import __version__
from pyrite.wire.identity import Identity
from pyrite.wire.keys import keys_from, new_secret
from pyrite.wire.wire import NotReached, Wire
from pyrite.workload import JobState, Run, RunBroken, Workload
from pyrite.workload.workers.launched import hosting, launching
from pyrite.workload.workers.launched.launching import Post
from pyrite.workload.workers.launched.parcels import PURPOSE
from tests.workload import commands
from tests.workload.conftest import is_alive, processes_of, row_of, states, wait_until


class Hosts:
    """A launcher whose hosts are processes of their own."""

    def __init__(self) -> None:
        self.processes: list[BaseProcess] = []

    def map(self, function: Callable[[Post], None], posts: Iterable[Post]) -> Iterator[None]:
        for post in posts:
            self.processes.append(get_context("spawn").Process(target=function, args=(post,)))
            self.processes[-1].start()
        for process in self.processes:
            process.join()
            process.close()
            yield

    def signal(self, number: int) -> None:
        for process in self.processes:
            assert process.pid is not None
            os.kill(process.pid, number)


class Held:
    """A launcher that starts its workers, in threads, when it is told to."""

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self._came = threading.Event()
        self._may_go = threading.Event()

    def map(self, function: Callable[[Post], None], posts: Iterable[Post]) -> Iterator[None]:
        self.posts += posts
        self._came.set()
        self._may_go.wait(60)
        with ThreadPoolExecutor(len(self.posts)) as pool:
            yield from pool.map(function, self.posts)

    def post(self) -> Post:
        assert self._came.wait(20)
        return self.posts[0]

    def go(self) -> None:
        self._may_go.set()


@pytest.fixture
def held() -> Iterator[Held]:
    launcher = Held()
    yield launcher
    launcher.go()


def waiting_job(tmp_path: Path) -> Workload:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    return Workload().add("job", commands.tell_and_wait, args=[said, go])


def worker_pid(tmp_path: Path, *, count: int = 1) -> int:
    """Of the worker that runs the waiting job, once it was started so many times."""
    wait_until(lambda: len(commands.lines(tmp_path / "said")) >= count)
    return int(commands.lines(tmp_path / "said")[-1])


# What they do


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_launcher_starts_persistent_workers(tmp_path: Path, kind: str) -> None:
    with (
        ThreadPoolExecutor(2)
        if kind == "threads"
        else ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool
    ):
        workload = Workload().add(
            "killer", commands.kill_worker_the_first_time, args=[str(tmp_path / "marker")]
        )
        for n in range(20):
            workload.add(f"j{n}", commands.note, args=[str(tmp_path / "out"), str(n)])
        workload.add("fails", commands.fail)
        hanging = [str(tmp_path / "said"), str(tmp_path / "first")]
        workload.add(
            "hangs", commands.tell_and_hang_the_first_time, args=hanging, timeout=1, retries=1
        )
        run = workload.run(workers=2, launcher=pool.map, store=tmp_path / "run").wait()
    assert [row["job"] for row in run.table() if row["state"] != JobState.DONE] == ["fails"]
    assert run.results["killer"] == "survived"
    assert row_of(run, "hangs")["attempt"] == 2
    assert sorted(map(int, commands.lines(tmp_path / "out"))) == list(range(20))


def test_a_launched_worker_that_ends_with_exit_code_0_is_replaced(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        workload = Workload().add("leaver", os._exit, args=[0]).add("other", commands.nothing)
        run = workload.run(
            workers=1, launcher=pool.map, crashes_max=1, store=tmp_path / "run"
        ).wait()
    assert states(run) == {"leaver": "CRASHED", "other": "DONE"}


def test_a_launched_worker_that_cannot_be_made_clean_is_replaced(tmp_path: Path) -> None:
    workload = Workload()
    for n in range(3):
        workload.add(f"j{n}", lambda: threading.Thread(target=threading.Event().wait).start())
    with ThreadPoolExecutor(1) as pool:
        run = workload.run(workers=1, launcher=pool.map, crashes_max=0, store=tmp_path / "run")
        assert run.wait(60).counts() == {JobState.DONE: 3}
    assert {(row["worker"], row["attempt"]) for row in run.table()} == {
        (f"w{n}", 1) for n in (1, 2, 3)
    }


def test_the_signal_that_killed_a_launched_worker_is_named(tmp_path: Path) -> None:
    workload = Workload().add("job", commands.kill_worker)
    with ThreadPoolExecutor(1) as pool:
        run = workload.run(
            workers=1, launcher=pool.map, crashes_max=0, store=tmp_path / "run"
        ).wait()
    assert "SIGKILL" in str(row_of(run, "job")["error"])


def test_no_job_waits_behind_a_long_one_while_a_launched_worker_is_idle(tmp_path: Path) -> None:
    workload = waiting_job(tmp_path)
    for n in range(3):
        workload.add(f"j{n}", commands.nothing)
    with ThreadPoolExecutor(2) as pool:
        run = workload.run(workers=2, launcher=pool.map, store=tmp_path / "run")
        wait_until(lambda: run.counts().get(JobState.DONE) == 3)
        (tmp_path / "go").touch()
        run.wait()


def test_few_jobs_wait_behind_one_that_turns_out_to_be_long(tmp_path: Path) -> None:
    workload = Workload()
    for n in range(500):
        workload.add(f"short {n}", commands.nothing)
    long = [str(tmp_path / "said"), str(tmp_path / "go")]
    workload.add("long", commands.tell_and_wait, args=long)
    for n in range(100):
        workload.add(f"later {n}", commands.nothing)
    with ThreadPoolExecutor(1) as pool:
        run = workload.run(workers=1, launcher=pool.map, store=tmp_path / "run")
        worker_pid(tmp_path)
        wait_until(lambda: run.counts().get(JobState.ASSIGNED) == 1)
        (tmp_path / "go").touch()
        assert run.wait().counts() == {JobState.DONE: 601}


def test_a_launcher_that_fails_breaks_the_run(tmp_path: Path) -> None:
    def launcher(function: Any, posts: Any) -> Any:
        raise OSError("no machines today")

    run = Workload().add("job", commands.nothing).run(launcher=launcher, store=tmp_path / "run")
    with pytest.raises(RunBroken, match="no machines today"):
        run.wait()


# Who may be one


def dialed(address: str, keys: Any) -> str:
    """Why one with these keys cannot connect."""
    wire = Wire(keys, Identity())
    try:
        wire.dial(address)
        while True:
            wire.park(None)
            for event in wire.turn():
                assert isinstance(event, NotReached)
                return event.reason
    finally:
        wire.close()


def test_strangers_are_refused_and_logged_once_and_the_master_serves_on(
    tmp_path: Path, held: Held
) -> None:
    workload = Workload().add("job", commands.nothing)
    run = workload.run(workers=1, launcher=held.map, store=tmp_path / "run")
    address = held.post().address
    host, port = address.split(":")
    for _ in range(2):
        assert "secret" in dialed(address, keys_from(new_secret(), PURPOSE))
    with socket.create_connection((host, int(port))) as stranger:
        stranger.sendall(secrets.token_bytes(1000))
        with contextlib.suppress(ConnectionResetError):
            while stranger.recv(1000):  # until the master hangs up
                pass
    with socket.create_connection((host, int(port))):  # it says nothing, all the time
        held.go()
        assert run.wait().counts() == {JobState.DONE: 1}
    log = (tmp_path / "run" / "master.log").read_text()
    assert log.count("refused a connection") == 1


def test_a_client_of_a_cluster_cannot_talk_to_a_master(tmp_path: Path, held: Held) -> None:
    workload = Workload().add("job", commands.nothing)
    run = workload.run(workers=1, launcher=held.map, store=tmp_path / "run")
    post = held.post()
    with pytest.raises(PyriteError, match="it has another secret, or it is not a member"):
        pyrite.client(f"pyrite://{post.address}", secret=post.secret)
    held.go()
    run.wait()


def test_a_host_of_another_version_is_refused_and_both_versions_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosting, "Identity", partial(Identity, pyrite="9.9", python="3.99"))
    with ThreadPoolExecutor(1) as pool:
        run = (
            Workload()
            .add("job", commands.nothing)
            .run(workers=1, launcher=pool.map, store=tmp_path / "run")
        )
        with pytest.raises(RunBroken, match="versions differ") as broken:
            run.wait()
    for version in ("9.9", "3.99", __version__, "the launcher"):
        assert version in str(broken.value)


def test_the_secret_is_in_no_command_line_and_no_environment_and_not_shown(
    tmp_path: Path, held: Held
) -> None:
    run = waiting_job(tmp_path).run(workers=1, launcher=held.map, store=tmp_path / "run")
    held.go()
    worker_pid(tmp_path)
    secret = held.post().secret
    for pid, _ in processes_of(tmp_path):
        for name in ("cmdline", "environ"):
            assert secret.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()
    assert secret not in repr(held.post())
    (tmp_path / "go").touch()
    run.wait()


# Who dies with whom


def test_a_host_that_is_killed_takes_its_worker_along_and_its_job_runs_again(
    tmp_path: Path,
) -> None:
    hosts = Hosts()
    run = waiting_job(tmp_path).run(workers=1, launcher=hosts.map, store=tmp_path / "run")
    worker = worker_pid(tmp_path)
    hosts.signal(signal.SIGKILL)
    wait_until(lambda: not is_alive(worker), 2)
    with pytest.raises(RunBroken, match="the launcher returned"):
        run.wait(10)
    again = Run.resume(tmp_path / "run", launcher=None)
    (tmp_path / "go").touch()
    assert again.wait().counts() == {JobState.DONE: 1}


def test_a_stopped_worker_does_not_outlive_its_host(tmp_path: Path) -> None:
    hosts = Hosts()
    run = waiting_job(tmp_path).run(workers=1, launcher=hosts.map, store=tmp_path / "run")
    worker = worker_pid(tmp_path)
    os.kill(worker, signal.SIGSTOP)
    hosts.signal(signal.SIGKILL)
    wait_until(lambda: not is_alive(worker), 2)
    with pytest.raises(RunBroken, match="the launcher returned"):
        run.wait(10)


def test_a_host_that_is_stopped_is_missed_after_the_limit_of_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "LIMITS", {"handshake": 10.0, "silence": 1.2})
    hosts = Hosts()
    run = waiting_job(tmp_path).run(workers=1, launcher=hosts.map, store=tmp_path / "run")
    worker = worker_pid(tmp_path)
    hosts.signal(signal.SIGSTOP)
    wait_until(lambda: row_of(run, "job")["state"] is JobState.READY, 5)
    hosts.signal(signal.SIGCONT)
    assert worker_pid(tmp_path, count=2) != worker
    assert not is_alive(worker)
    (tmp_path / "go").touch()
    run.wait()
    assert row_of(run, "job")["attempt"] == 2


def test_a_master_that_is_stopped_is_missed_after_the_limit_of_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "LIMITS", {"handshake": 1.2, "silence": 1.2})
    with ThreadPoolExecutor(1) as pool:
        run = waiting_job(tmp_path).run(workers=1, launcher=pool.map, store=tmp_path / "run")
        worker = worker_pid(tmp_path)
        os.kill(run.pid, signal.SIGSTOP)
        wait_until(lambda: not is_alive(worker), 10)
    os.kill(run.pid, signal.SIGCONT)
    with pytest.raises(RunBroken, match="the launcher returned"):
        run.wait(60)
    assert not run.failed()


def test_launched_workers_do_not_outlive_their_master(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    with ThreadPoolExecutor(1) as pool:
        run = (
            Workload()
            .add("job", commands.tell_and_wait, args=[said, go])
            .run(workers=1, launcher=pool.map, store=tmp_path / "run")
        )
        commands.wait_for(said)
        os.kill(run.pid, signal.SIGKILL)
        wait_until(lambda: not processes_of(tmp_path), 2)


def test_a_master_whose_launcher_was_killed_does_not_wait_forever(tmp_path: Path) -> None:
    said = str(tmp_path / "said")
    code = f"""
from concurrent.futures import ThreadPoolExecutor
from pyrite.workload import Workload
from tests.workload import commands
with ThreadPoolExecutor(1) as pool:
    workload = Workload().add("job", commands.tell_and_wait, args=[{said!r}, "/nowhere"])
    workload.run(workers=1, launcher=pool.map, store={str(tmp_path / "run")!r}).wait()
"""
    session = subprocess.Popen([sys.executable, "-c", code])
    commands.wait_for(said)
    session.kill()
    session.wait()
    with pytest.raises(RunBroken, match="the launcher"):
        Run.attach(tmp_path / "run").wait(10)
    wait_until(lambda: not processes_of(tmp_path), 3)
