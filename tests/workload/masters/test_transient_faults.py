"""Transient workers when something goes wrong: Ctrl-C, jobs that do not end, executors that fail,
and results that are gone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from pyrite.workload import JobState, Run, RunBroken, Workload
from pyrite.workload.workers.launched import launching
from tests.workload import commands
from tests.workload.conftest import processes_of, row_of, states, wait_until


def process_pool() -> Executor:
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


# Ctrl-C


def test_ctrl_c_stops_the_waiting_and_not_the_run(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    workload = Workload().add("job", commands.tell_and_wait, args=[said, go])
    run = workload.run(kind="transient", store=tmp_path / "run")
    commands.wait_for(said)
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        run.wait()
    assert not run.has_ended
    assert run.cancel().has_ended
    assert states(run) == {"job": "CANCELLED"}


@pytest.mark.parametrize("executor", ["None", "ProcessPoolExecutor(2, mp_context=get_context())"])
def test_ctrl_c_in_the_terminal_reaches_no_job_and_the_interpreter_leaves_nothing(
    tmp_path: Path, executor: str
) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    script = tmp_path / "script.py"
    script.write_text(
        f"""
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from pyrite.workload import Workload
from tests.workload import commands
if __name__ == "__main__":
    workload = Workload().add("job", commands.tell_and_wait, args=[{said!r}, {go!r}])
    workload.add("hangs", commands.tell_and_wait, args=[{said!r}, "/nowhere"], after=["job"])
    run = workload.run(kind="transient", executor={executor}, store={str(tmp_path / "run")!r})
    try:
        run.wait()
    except KeyboardInterrupt:
        print("interrupted", run.has_ended, flush=True)
    Path({go!r}).touch()
    while len(commands.lines({said!r})) < 2:
        pass
"""
    )
    session = subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    commands.wait_for(said)
    os.killpg(session.pid, signal.SIGINT)
    output, _ = session.communicate(timeout=60)
    assert output == b"interrupted False\n"
    assert states(Run.attach(tmp_path / "run")) == {"job": "DONE", "hangs": "CANCELLED"}
    wait_until(lambda: not processes_of(tmp_path), 5)


# Jobs that cannot be stopped


@contextmanager
def threads(kind: type[ThreadPoolExecutor], go: str) -> Iterator[ThreadPoolExecutor]:
    """A pool with one thread. Its jobs end at the end of the block at the latest."""
    with kind(1) as pool:
        try:
            yield pool
        finally:
            Path(go).touch()


def hang_until(go: str) -> None:
    print("begins")
    commands.wait_for(go)


@pytest.mark.parametrize("is_given", [True, False])
def test_jobs_behind_a_thread_that_does_not_end_run_in_new_threads(
    tmp_path: Path, is_given: bool
) -> None:
    go = str(tmp_path / "go")
    workload = Workload()
    for n in range(3):
        workload.add(f"hangs{n}", commands.wait_for, args=[go], timeout=0.2)
        workload.add(f"j{n}", commands.nothing, timeout=0.2, priority=n)
    with threads(ThreadPoolExecutor, go) as pool:
        run = workload.run(
            kind="transient",
            executor=pool if is_given else lambda: ThreadPoolExecutor(1),
            store=tmp_path / "run",
        ).wait(60)
    assert states(run) == {
        **{f"hangs{n}": "TIMEOUT" for n in range(3)},
        **{f"j{n}": "DONE" for n in range(3)},
    }


class MyPool(ThreadPoolExecutor):
    pass


@pytest.mark.parametrize("is_given", [True, False])
def test_a_run_whose_threads_all_hang_is_broken_with_a_sentence(
    tmp_path: Path, is_given: bool
) -> None:
    go = str(tmp_path / "go")
    workload = Workload().add("hangs", commands.wait_for, args=[go], timeout=0.2)
    workload.add("job", commands.nothing, timeout=0.2)
    with threads(MyPool, go) as pool:
        run = workload.run(
            kind="transient", executor=pool if is_given else lambda: pool, store=tmp_path / "run"
        )
        with pytest.raises(RunBroken, match="taken by jobs that did not end after their timeout"):
            run.wait(60)
    assert states(run)["hangs"] == "TIMEOUT"
    assert states(Run.resume(tmp_path / "run", executor=None).wait()) == {
        "hangs": "DONE",
        "job": "DONE",
    }


def test_a_timeout_does_not_count_while_the_pool_is_busy_with_other_calls(tmp_path: Path) -> None:
    go = threading.Event()
    workload = Workload().add("job", commands.nothing, timeout=0.1)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(go.wait)
        run = workload.run(kind="transient", executor=pool, store=tmp_path / "run")
        with pytest.raises(TimeoutError):
            run.wait(0.5)
        go.set()
        assert states(run.wait(60)) == {"job": "DONE"}


# Logs


@pytest.mark.parametrize(
    "make",
    [None, process_pool, lambda: ThreadPoolExecutor(2)],
    ids=["own processes", "process pool", "threads"],
)
def test_the_output_of_a_job_that_did_not_come_back_is_in_its_log(
    tmp_path: Path, make: Callable[[], Executor] | None
) -> None:
    go = str(tmp_path / "go")

    def crash() -> None:
        print("before the crash")
        os.kill(os.getpid(), signal.SIGKILL)

    # The import of this module, in a process that has just begun, takes a part of the time.
    workload = Workload().add("slow", hang_until, args=[go], timeout=2)
    if make is None or make is process_pool:
        workload.add("crash", crash, after=["late"])
    workload.add("late", commands.note, args=[str(tmp_path / "out"), "x"])
    run = workload.run(
        kind="transient", executor=make, crashes_max=0, workers=2, store=tmp_path / "run"
    ).wait(60)
    Path(go).touch()
    assert states(run)["slow"] == "TIMEOUT"
    assert run.log("slow") == "begins\n"
    if "crash" in states(run):
        assert states(run)["crash"] == "CRASHED"
        assert run.log("crash") == "before the crash\n"


def test_the_log_of_a_job_that_runs_can_be_read(tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    workload = Workload().add("job", hang_until, args=[go])
    run = workload.run(kind="transient", store=tmp_path / "run")
    wait_until(lambda: run.log("job") == "begins\n", 60)
    Path(go).touch()
    run.wait()


TURNS = threading.Barrier(2)


def print_in_turns(name: str) -> None:
    for n in range(20):
        TURNS.wait(60)
        print(name, n)


def test_jobs_in_threads_that_print_at_once_have_their_own_logs(tmp_path: Path) -> None:
    workload = Workload().add("a", print_in_turns, args=["a"]).add("b", print_in_turns, args=["b"])
    run = workload.run(
        kind="transient", executor=lambda: ThreadPoolExecutor(2), store=tmp_path / "run"
    ).wait(60)
    for name in "ab":
        assert run.log(name) == "".join(f"{name} {n}\n" for n in range(20))


def test_a_job_in_a_thread_may_close_or_detach_its_output(tmp_path: Path) -> None:
    workload = Workload()
    for n, act in enumerate(("close", "detach")):
        workload.add(f"j{n}", print_and, args=[act])
    run = workload.run(
        kind="transient", executor=lambda: ThreadPoolExecutor(1), store=tmp_path / "run"
    ).wait(60)
    assert states(run) == {"j0": "DONE", "j1": "DONE"}
    assert [run.log("j0"), run.log("j1")] == ["close\n", "detach\n"]


def print_and(act: str) -> None:
    print(act)
    getattr(sys.stdout, act)()


# Results that are gone


@pytest.mark.parametrize("suffix", [".pickle", ""], ids=["result", "all records"])
@pytest.mark.parametrize("kind", ["transient", "persistent"])
def test_a_job_whose_input_is_gone_fails_and_the_others_run(
    tmp_path: Path, kind: Any, suffix: str
) -> None:
    folder = str(tmp_path / "run" / "segments")
    workload = Workload()

    @workload.job
    def large() -> bytes:
        return bytes(2 << 20)

    @workload.job(after=["large"])
    def remove() -> None:
        for name in os.listdir(folder):
            if name.endswith(suffix):
                os.remove(os.path.join(folder, name))

    @workload.job(after=["remove"])
    def use(large: bytes) -> int:
        return len(large)

    workload.add("other", commands.nothing, after=["remove"])
    run = workload.run(kind=kind, store=tmp_path / "run").wait(60)
    assert states(run) == {"large": "DONE", "remove": "DONE", "use": "FAILED", "other": "DONE"}
    error = str(row_of(run, "use")["error"])
    assert "the result of its upstream job 'large' cannot be loaded" in error or not suffix


# Executors that fail


class Odd(Executor):
    """Answers each call with the next of the given functions."""

    def __init__(self, *answers: Callable[[Callable[[], Any]], Future[Any]]) -> None:
        self._answers = list(answers)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return answer(lambda: fn(*args, **kwargs))


def runs(call: Callable[[], Any]) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(call())
    return future


def is_cancelled(_: object) -> Future[Any]:
    future: Future[Any] = Future()
    future.cancel()
    future.set_running_or_notify_cancel()
    return future


def raises(error: Exception) -> Callable[[object], Future[Any]]:
    def answer(_: object) -> Future[Any]:
        raise error

    return answer


def returns(value: object) -> Callable[[object], Future[Any]]:
    def answer(_: object) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(value)
        return future

    return answer


def never(_: object) -> Future[Any]:
    return Future()


def run_on(executor: Any, tmp_path: Path, **options: Any) -> Run:
    workload = Workload().add("job", commands.nothing, **options)
    return workload.run(kind="transient", executor=executor, store=tmp_path / "run")


@pytest.mark.parametrize(
    ("executor", "sentence"),
    [
        (Odd(raises(ValueError("no room"))), "executor .Odd. accepts no jobs: ValueError: no room"),
        (lambda: Odd(raises(BrokenExecutor("gone"))), "accepts no jobs: BrokenExecutor: gone"),
        (lambda: 7, "must return an Executor; it returned int"),
        (lambda: 1 / 0, "the function given as executor= made no executor: ZeroDivisionError"),
    ],
)
def test_an_executor_that_takes_no_job_breaks_the_run(
    tmp_path: Path, executor: Any, sentence: str
) -> None:
    with pytest.raises(RunBroken, match=sentence):
        run_on(executor, tmp_path).wait(60)


def test_a_job_whose_call_is_cancelled_from_outside_is_tried_again(tmp_path: Path) -> None:
    assert states(run_on(Odd(is_cancelled, runs), tmp_path).wait(60)) == {"job": "DONE"}
    run = run_on(Odd(is_cancelled), tmp_path / "always").wait(60)
    assert states(run) == {"job": "CRASHED"}
    assert "its call was cancelled" in str(row_of(run, "job")["error"])


def test_an_executor_that_returns_something_else_fails_the_job(tmp_path: Path) -> None:
    run = run_on(Odd(returns(7)), tmp_path).wait(60)
    assert row_of(run, "job")["error"] == (
        "the executor (Odd) returned something else than the call: int"
    )


def test_a_job_of_an_executor_that_never_answers_has_its_timeout(tmp_path: Path) -> None:
    assert states(run_on(lambda: Odd(never), tmp_path, timeout=0.3).wait(60)) == {"job": "TIMEOUT"}


def test_an_executor_that_is_shut_down_in_the_middle_breaks_the_run(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    workload = Workload().add("a", commands.tell_and_wait, args=[said, go])
    workload.add("b", commands.nothing, after=["a"])
    pool = ThreadPoolExecutor(1)
    run = workload.run(kind="transient", executor=pool, store=tmp_path / "run")
    commands.wait_for(said)
    pool.shutdown(wait=False, cancel_futures=True)
    Path(go).touch()
    with pytest.raises(RunBroken, match="do not shut it down before the run has ended"):
        run.wait(60)
    assert states(run)["a"] == JobState.DONE


@pytest.mark.parametrize("executor", ["Never()", "ProcessPoolExecutor(1)"])
def test_the_interpreter_ends_though_a_call_does_not(tmp_path: Path, executor: str) -> None:
    said = str(tmp_path / "said")
    code = f"""
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pyrite.workload import Workload
from tests.workload import commands
class Never(Executor):
    def submit(self, *_, **__):
        commands.note({said!r}, "submitted")
        return Future()
workload = Workload().add("job", commands.tell_and_wait, args=[{said!r}, "/nowhere"])
workload.run(kind="transient", executor={executor}, store={str(tmp_path / "run")!r})
commands.wait_for({said!r})
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
    assert Run.attach(tmp_path / "run").status.phase == "cancelled"
    wait_until(lambda: not processes_of(tmp_path), 5)


# Nothing is left


def test_nothing_is_left_of_200_jobs(tmp_path: Path) -> None:
    def left() -> tuple[int, int, int]:
        files = len(os.listdir("/proc/self/fd"))
        return files, threading.active_count(), len(processes_of(tmp_path))

    def of_jobs(count: int, **options: Any) -> None:
        workload = Workload()
        for n in range(count):
            workload.add(f"j{n}", commands.fail if n % 7 == 0 else commands.nothing)
        run = workload.run(
            kind="transient", store=tmp_path / f"run{count}", rerun=True, **options
        ).wait(60)
        assert run.counts() == {
            JobState.DONE: count - len(range(0, count, 7)),
            JobState.FAILED: len(range(0, count, 7)),
        }

    of_jobs(2)
    before, temporary = left(), set(os.listdir("/tmp"))
    of_jobs(200, max_jobs=50)
    of_jobs(200, executor=lambda: ThreadPoolExecutor(2))
    wait_until(lambda: left() <= before, 10)
    assert not {name for name in set(os.listdir("/tmp")) - temporary if "pyrite-workload" in name}


@pytest.mark.parametrize(
    "options",
    [{"max_jobs": 5}, {"executor": process_pool}],
    ids=["own processes", "process pool"],
)
def test_random_kills_of_processes_lose_and_double_nothing(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    rng = random.Random(1)
    count, out = 40, str(tmp_path / "out")

    def work(n: int) -> int:
        commands.note(out, f"begin {n} {os.getpid()}")
        time.sleep(0.02)
        commands.note(out, f"end {n}")
        return n * n

    workload = Workload()
    for n in range(count):
        workload.add(f"j{n}", work, args=[n], after=[f"j{n - 2}"] if n > 1 else [])
    run = workload.run(
        kind="transient", crashes_max=1000, workers=2, store=tmp_path / "run", **options
    )
    kills = 0
    while not run.wait_for_master(rng.random() * 0.2):
        begun = [line.split() for line in commands.lines(out) if line.startswith("begin")]
        if begun and kills < 5:
            kills += 1
            with suppress(ProcessLookupError):
                os.kill(int(begun[-1][2]), signal.SIGKILL)
    run.wait()
    assert dict(run.results) == {f"j{n}": n * n for n in range(count)}
    ends = [line for line in commands.lines(out) if line.startswith("end")]
    assert set(ends) == {f"end {n}" for n in range(count)}
    assert len(ends) <= count + 2 * kills  # all jobs of a pool run again when it breaks


def test_a_process_that_never_begins_its_job_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import time\ntime.sleep(1000)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(launching, "START_SECONDS", 1.0)
    workload = Workload().add("j", commands.nothing, timeout=100)
    run = workload.run(kind="transient", workers=1, crashes_max=0, store=tmp_path / "run").wait(60)
    row = row_of(run, "j")
    assert (row["state"], row["error"]) == (
        JobState.CRASHED,
        "its worker process did not start within 1 s",
    )
