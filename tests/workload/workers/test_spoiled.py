"""A job cannot spoil the next one in the same worker: what it changed is restored; if that is
impossible, another worker runs the next job."""

from __future__ import annotations

import _thread
import locale
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from pyrite.workload import Workload
from tests.workload.conftest import states


def look() -> dict[str, Any]:
    """What a job finds."""
    print("looked")
    umask = os.umask(0)
    os.umask(umask)
    subprocess.run([sys.executable, "-S", "-c", "print('also a program')"], check=True)
    return {
        "worker": os.getpid(),
        "environ": dict(os.environ),
        "path": list(sys.path),
        "umask": umask,
        "timers": [signal.getitimer(timer) for timer in range(3)],
        "handlers": [signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGINT)],
        "mask": signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "folder": os.getcwd(),
        "locale": locale.setlocale(locale.LC_ALL),
        "files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "nice": os.nice(0),
        "recursion": sys.getrecursionlimit(),
        "warnings": list(warnings.filters),
        "cores": os.sched_getaffinity(0),
        "input": sys.stdin.read(),
    }


def replace_environ() -> None:
    os.environ = {"HOME": "elsewhere"}  # type: ignore[assignment]  # noqa: B003


def detach() -> None:
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, TextIOWrapper)
        stream.detach()


SPOILERS: dict[str, Callable[[], object]] = {
    "recursion limit": lambda: sys.setrecursionlimit(150),
    "warnings": lambda: warnings.simplefilter("error"),
    "detach": detach,
    "environ": lambda: (os.environ.update(SPOILED="1"), os.environ.pop("PATH")),
    "replaced environ": replace_environ,
    "path": lambda: sys.path.insert(0, "/nowhere"),
    "umask": lambda: os.umask(0o777),
    "alarm": lambda: signal.alarm(1),
    "interval timer": lambda: signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2),
    "handlers": lambda: [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGALRM, signal.SIGINT)],
    "mask": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]),
    "folder": lambda: os.chdir("/"),
    "locale": lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8"),
    "limit": lambda: resource.setrlimit(
        resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    ),
    "cores": lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]),
    "input": lambda: (sys.stdin.close(), os.close(0)),
}


@pytest.mark.parametrize("options", [{}, {"kind": "transient", "max_jobs": 1000}])
def test_what_a_job_changed_in_its_worker_is_restored_for_the_next_one(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    workload = Workload().add("before", look)
    last = "before"
    for name, spoil in SPOILERS.items():
        workload.add(name, lambda spoil=spoil: bool(spoil()), after=[last])
        workload.add(last := f"after {name}", look, after=[name])
    run = workload.run(workers=1, store=tmp_path / "run", **options).wait()
    assert not run.failed(), run.failed()
    before = run.results["before"]
    for name in SPOILERS:
        assert run.results[f"after {name}"] == before, name
        assert run.log(f"after {name}") == "looked\nalso a program\n"


def test_the_unfinished_line_of_a_job_that_replaced_its_stream_is_in_its_own_log(
    tmp_path: Path,
) -> None:
    def replace_stream() -> None:
        sys.modules["kept"] = sys.stdout  # type: ignore[assignment]  # so that it is not collected
        sys.stdout.write("mine")
        sys.stdout = None

    workload = Workload().add("first", replace_stream)
    workload.add("second", lambda: print("other"), after=["first"])
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert (run.log("first"), run.log("second")) == ("mine", "other\n")


def test_a_nice_value_is_restored_or_the_worker_is_replaced(tmp_path: Path) -> None:
    workload = Workload().add("spoil", os.nice, args=[5])
    workload.add("look", lambda: os.nice(0), after=["spoil"])
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert run.results["look"] == run.results["spoil"] - 5


def print_for_ever(began: threading.Event) -> None:
    while True:
        began.set()
        try:
            print("still here", flush=True)
        except ValueError:  # the stream is being replaced
            pass
        time.sleep(0.001)


def leave_thread(kind: str) -> None:
    began = threading.Event()
    if kind == "raw":
        _thread.start_new_thread(print_for_ever, (began,))
    else:
        threading.Thread(target=print_for_ever, args=[began], daemon=kind == "daemon").start()
    began.wait()


@pytest.mark.parametrize("kind", ["daemon", "non-daemon", "raw"])
def test_a_thread_that_still_prints_does_not_print_into_the_next_job(
    tmp_path: Path, kind: str
) -> None:
    workload = Workload().add("leave", leave_thread, args=[kind])
    for n in range(5):
        workload.add(f"j{n}", lambda: print("mine"), after=["leave"])
    run = workload.run(workers=1, crashes_max=0, store=tmp_path / "run").wait()
    assert set(states(run).values()) == {"DONE"}
    assert [run.log(f"j{n}") for n in range(5)] == ["mine\n"] * 5
    assert {row["attempt"] for row in run.table()} == {1}
    assert len({row["worker"] for row in run.table()}) == 2


def test_a_worker_is_not_replaced_for_threads_that_end(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def use_threads() -> int:
        ThreadPoolExecutor(2).submit(abs, -1).result()  # not shut down, but collected
        threading.Thread(target=time.sleep, args=[0.005]).start()
        return os.getpid()

    workload = Workload()
    for n in range(3):
        workload.add(f"j{n}", use_threads)
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert len(set(run.results.values())) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_worker_that_became_another_user_is_replaced(tmp_path: Path) -> None:
    workload = Workload().add("spoil", os.setresuid, args=[65534] * 3)
    workload.add("look", os.getuid, after=["spoil"])
    run = workload.run(workers=1, crashes_max=0, store=tmp_path / "run").wait()
    assert states(run) == {"spoil": "DONE", "look": "DONE"}
    assert run.results["look"] == 0


def test_a_job_that_lets_its_worker_write_nothing_breaks_only_itself(tmp_path: Path) -> None:
    def spoil() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    workload = Workload().add("spoil", spoil)
    for n in range(3):
        workload.add(f"j{n}", os.getpid)
    run = workload.run(workers=1, crashes_max=0, store=tmp_path / "run").wait()
    found = states(run)
    assert found.pop("spoil") in ("CRASHED", "DONE")  # some users may lift the limit again
    assert set(found.values()) == {"DONE"}


def test_the_result_of_a_job_is_written_after_its_limits_are_restored(tmp_path: Path) -> None:
    def lower_limits() -> bytes:
        for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
            resource.setrlimit(limit, (3, resource.getrlimit(limit)[1]))
        return bytes(2_000_000)

    workload = Workload().add("lower", lower_limits)
    run = workload.run(workers=1, crashes_max=0, store=tmp_path / "run").wait()
    assert run.results["lower"] == bytes(2_000_000)
