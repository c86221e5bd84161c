"""Transient workers in our own processes, in Python's pools, and on Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from pyrite import Instance
from pyrite.workload import JobState, Run, RunBroken, SparkExecutor, StoreInUse, Workload
from tests.workload import commands
from tests.workload.conftest import processes_of, row_of, states, wait_until

Make = Callable[[], Executor] | None


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check for threads off: the Spark instance that these tests share outlives each of
    them."""


def process_pool() -> Executor:
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


@pytest.fixture(scope="module")
def spark_executor(local_spark: Instance) -> Iterator[Executor]:
    executor = SparkExecutor(local_spark.spark(), max_workers=2)
    yield executor
    executor.shutdown()


@pytest.fixture(params=["own processes", "process pool", "threads", "spark"])
def executor(request: pytest.FixtureRequest) -> Any:
    if request.param == "spark":
        return request.getfixturevalue("spark_executor")
    return {
        "own processes": None,
        "process pool": process_pool,
        "threads": lambda: ThreadPoolExecutor(2),
    }[request.param]


@pytest.fixture(
    params=["own processes", "process pool", pytest.param("spark", marks=pytest.mark.soak)]
)
def executor_of_processes(request: pytest.FixtureRequest) -> Any:
    if request.param == "spark":
        return request.getfixturevalue("spark_executor")
    return {"own processes": None, "process pool": process_pool}[request.param]


def test_results_order_and_output(tmp_path: Path, executor: Any) -> None:
    workload = Workload()

    @workload.job
    def a() -> int:
        print("from a")
        return 2

    @workload.job
    def b(a: int) -> list[int]:
        return [a] * 100_000

    @workload.job
    def c(a: int, b: list[int]) -> int:
        return a + len(b)

    workload.add("fails", commands.fail, retries=1)
    workload.add("below", commands.nothing, after=["fails"])
    run = workload.run(
        kind="transient", executor=executor, workers=2, store=tmp_path / "run"
    ).wait()
    assert states(run) == {
        "a": "DONE",
        "b": "DONE",
        "c": "DONE",
        "fails": "FAILED",
        "below": "BLOCKED",
    }
    assert run.results["c"] == 100_002
    assert run.log("a") == "from a\n"
    assert row_of(run, "fails")["error"] == "ValueError: on purpose"
    assert row_of(run, "fails")["attempt"] == 2
    assert "raise ValueError(message)" in run.traceback("fails")
    assert (
        states(workload.run(kind="transient", executor=executor, store=tmp_path / "run").wait())[
            "c"
        ]
        == "SKIPPED"
    )


def test_a_job_that_kills_its_worker_is_tried_again_and_no_other_is_blamed(
    tmp_path: Path, executor_of_processes: Any
) -> None:
    workload = Workload().add(
        "once", commands.kill_worker_the_first_time, args=[str(tmp_path / "marker")]
    )
    workload.add("always", commands.kill_worker).add("below", commands.nothing, after=["always"])
    for n in range(4):
        workload.add(f"j{n}", commands.nothing)
    run = workload.run(
        kind="transient",
        executor=executor_of_processes,
        workers=2,
        crashes_max=1,
        store=tmp_path / "run",
    ).wait()
    expected = {
        "once": "DONE",
        "always": "CRASHED",
        "below": "BLOCKED",
        **{f"j{n}": "DONE" for n in range(4)},
    }
    assert states(run) == expected
    assert run.results["once"] == "survived"


def test_a_job_that_hangs_is_stopped_at_its_timeout_and_tried_again(
    tmp_path: Path, executor_of_processes: Any
) -> None:
    said, marker = str(tmp_path / "said"), str(tmp_path / "marker")
    workload = Workload().add(
        "job", commands.tell_and_hang_the_first_time, args=[said, marker], timeout=3, retries=1
    )
    workload.add("other", commands.nothing)
    run = workload.run(
        kind="transient", executor=executor_of_processes, workers=2, store=tmp_path / "run"
    ).wait()
    assert states(run) == {"job": "DONE", "other": "DONE"}
    assert row_of(run, "job")["attempt"] == 2
    wait_until(lambda: not Path(f"/proc/{commands.lines(said)[0]}").exists())


def test_a_job_that_hangs_in_a_thread_is_given_up(tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    workload = (
        Workload()
        .add("job", commands.wait_for, args=[go], timeout=0.2)
        .add("other", commands.nothing)
    )
    with ThreadPoolExecutor(2) as pool:
        run = workload.run(
            kind="transient", executor=pool, workers=2, store=tmp_path / "run"
        ).wait()
        assert states(run) == {"job": "TIMEOUT", "other": "DONE"}
        Path(go).touch()


def test_threads_share_this_process(tmp_path: Path) -> None:
    run = (
        Workload()
        .add("job", os.getpid)
        .run(kind="transient", executor=lambda: ThreadPoolExecutor(1), store=tmp_path / "run")
        .wait()
    )
    assert run.results["job"] == os.getpid()


def test_an_executor_that_was_given_is_left_open(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        Workload().add("job", commands.nothing).run(
            kind="transient", executor=pool, store=tmp_path / "run"
        ).wait()
        assert pool.submit(int).result() == 0


@pytest.mark.parametrize(("max_jobs", "processes"), [(1, 6), (3, 2)])
def test_workers_are_replaced_after_max_jobs(tmp_path: Path, max_jobs: int, processes: int) -> None:
    workload = Workload()
    for n in range(6):
        workload.add(f"j{n}", os.getpid)
    run = workload.run(
        kind="transient", workers=1, max_jobs=max_jobs, store=tmp_path / "run"
    ).wait()
    assert len(set(run.results.values())) == processes


def test_cancel_stops_running_jobs(tmp_path: Path, executor_of_processes: Any) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    workload = (
        Workload()
        .add("job", commands.tell_and_wait, args=[said, go])
        .add("below", commands.nothing, after=["job"])
    )
    run = workload.run(kind="transient", executor=executor_of_processes, store=tmp_path / "run")
    commands.wait_for(said)
    run.cancel()
    assert states(run) == {"job": "CANCELLED", "below": "CANCELLED"}
    wait_until(lambda: not Path(f"/proc/{commands.lines(said)[0]}").exists())


def test_another_process_can_attach_and_cancel(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    run = (
        Workload()
        .add("job", commands.tell_and_wait, args=[said, go])
        .run(kind="transient", store=tmp_path / "run")
    )
    commands.wait_for(said)
    code = (
        f"from pyrite.workload import Run; run = Run.attach({str(tmp_path / 'run')!r}); "
        f"print(run.has_ended); run.cancel()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert run.wait().status.phase == "cancelled"


def test_a_second_master_is_refused(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    workload = Workload().add("job", commands.tell_and_wait, args=[said, go])
    run = workload.run(kind="transient", store=tmp_path / "run")
    with pytest.raises(StoreInUse):
        workload.run(store=tmp_path / "run")
    Path(go).touch()
    run.wait()


def test_an_executor_that_cannot_be_replaced_breaks_the_run(tmp_path: Path) -> None:
    class Fragile(ProcessPoolExecutor):
        pass

    with Fragile(1, mp_context=get_context("spawn")) as pool:
        run = (
            Workload()
            .add("job", commands.kill_worker)
            .run(kind="transient", executor=pool, store=tmp_path / "run")
        )
        with pytest.raises(RunBroken, match="give a function that makes executors as executor="):
            run.wait()


def test_a_killed_interpreter_leaves_no_process_and_its_run_can_be_resumed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    said, out = str(tmp_path / "said"), str(tmp_path / "out")
    script.write_text(
        f"""
import sys
sys.path.insert(0, {os.getcwd()!r})
from pyrite.workload import Workload
from tests.workload import commands
workload = Workload().add("before", commands.note, args=[{out!r}, "before"])
args = [{said!r}, {str(tmp_path / "marker")!r}]
workload.add("during", commands.tell_and_hang_the_first_time, args=args, after=["before"])
workload.run(kind="transient", store={str(tmp_path / "run")!r}).wait()
"""
    )
    session = subprocess.Popen([sys.executable, str(script)])
    commands.wait_for(said)
    session.send_signal(signal.SIGKILL)
    session.wait()
    wait_until(lambda: not processes_of(tmp_path), 2)
    with pytest.raises(RunBroken, match="killed"):
        Run.attach(tmp_path / "run").wait()
    run = Run.resume(tmp_path / "run").wait()
    assert states(run) == {"before": "DONE", "during": "DONE"}
    assert commands.lines(out) == ["before"]


def test_transient_workers_end_with_their_interpreter(tmp_path: Path) -> None:
    said = str(tmp_path / "said")
    code = f"""
import sys
from pyrite.workload import Workload
from tests.workload import commands
workload = Workload().add("job", commands.tell_and_wait, args=[{said!r}, "/nowhere"])
workload.run(kind="transient", store={str(tmp_path / "run")!r})
commands.wait_for({said!r})
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=30).returncode == 0
    assert Run.attach(tmp_path / "run").status.phase == "cancelled"
    wait_until(lambda: not processes_of(tmp_path), 2)


def test_a_pool_that_forks_does_not_keep_the_store(tmp_path: Path) -> None:
    workload = Workload().add("job", commands.nothing)
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        for _ in range(2):
            workload.run(kind="transient", executor=pool, store=tmp_path / "run").wait()


def test_processes_of_a_pool_end_with_an_interpreter_that_is_killed(tmp_path: Path) -> None:
    said = str(tmp_path / "said")
    script = tmp_path / "script.py"
    script.write_text(
        f"""
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pyrite.workload import Workload
from tests.workload import commands
if __name__ == "__main__":
    pool = ProcessPoolExecutor(2, mp_context=get_context("fork"))
    workload = Workload().add("job", commands.tell_and_wait, args=[{said!r}, "/nowhere"])
    workload.run(kind="transient", executor=pool, store={str(tmp_path / "run")!r}).wait()
"""
    )
    session = subprocess.Popen(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": os.getcwd()}
    )
    commands.wait_for(said)
    session.kill()
    session.wait()
    wait_until(lambda: not processes_of(tmp_path), 3)


def test_a_hanging_job_in_a_thread_does_not_delay_the_end_of_the_run(tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    started = time.monotonic()
    workload = Workload().add("job", commands.wait_for, args=[go], timeout=0.2)
    run = workload.run(
        kind="transient", executor=lambda: ThreadPoolExecutor(1), store=tmp_path / "run"
    ).wait(20)
    assert time.monotonic() - started < 10
    assert states(run) == {"job": "TIMEOUT"}
    Path(go).touch()


def test_the_time_of_a_job_does_not_count_while_it_waits_for_a_thread(tmp_path: Path) -> None:
    workload = Workload()
    for n in range(3):
        workload.add(f"j{n}", time.sleep, args=[0.4], timeout=0.8)
    run = workload.run(
        kind="transient", workers=3, executor=lambda: ThreadPoolExecutor(1), store=tmp_path / "run"
    ).wait()
    assert {row["state"] for row in run.table()} == {JobState.DONE}


def test_a_late_cancel_request_does_not_cancel_the_next_run(tmp_path: Path) -> None:
    workload = Workload().add("job", commands.nothing)
    workload.run(kind="transient", store=tmp_path / "run").wait()
    Run.attach(tmp_path / "run").cancel()
    assert Run.resume(tmp_path / "run").wait().status.phase == "ended"


def test_all_output_of_a_thread_is_captured_for_its_own_job(tmp_path: Path) -> None:
    def job(n: int) -> int:
        print("text", n)
        sys.stdout.buffer.write(b"bytes %d\n" % n)
        return sys.stdout.fileno()

    before = sys.stdout
    workload = Workload().add("a", job, args=[1]).add("b", job, args=[2])
    run = workload.run(
        kind="transient", executor=lambda: ThreadPoolExecutor(2), store=tmp_path / "run"
    ).wait()
    assert not run.failed()
    assert [run.log("a"), run.log("b")] == ["text 1\nbytes 1\n", "text 2\nbytes 2\n"]
    assert sys.stdout is before


def test_a_future_killed_before_it_runs_is_cancelled() -> None:
    from pyrite.workload.workers.transient.executors import ProcessExecutor, WorkerDied

    executor = ProcessExecutor(1)
    first: Any = executor.submit(time.sleep, 1000)
    second: Any = executor.submit(time.sleep, 1000)
    second.kill()
    assert second.cancelled()
    wait_until(first.running)
    threading.Timer(0.1, first.kill).start()
    with pytest.raises(WorkerDied):
        first.result(timeout=10)
    executor.shutdown()


def test_the_output_of_a_spark_task_that_was_stopped_or_died_is_in_its_log(
    tmp_path: Path, spark_executor: Executor
) -> None:
    def crash() -> None:
        print("before the crash")
        commands.kill_worker()

    def hang() -> None:
        print("before the end")
        time.sleep(1000)

    workload = Workload().add("crash", crash).add("slow", hang, timeout=1)
    run = workload.run(
        kind="transient", executor=spark_executor, crashes_max=0, store=tmp_path / "run"
    ).wait(60)
    assert states(run) == {"crash": "CRASHED", "slow": "TIMEOUT"}
    assert [run.log("crash"), run.log("slow")] == ["before the crash\n", "before the end\n"]


def test_a_job_whose_spark_jobs_were_all_cancelled_by_ctrl_c_starts_again(
    tmp_path: Path, spark_executor: Executor, local_spark: Instance
) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    workload = Workload().add("job", commands.tell_and_wait, args=[said, go])
    run = workload.run(
        kind="transient", executor=spark_executor, crashes_max=0, store=tmp_path / "run"
    )
    commands.wait_for(said)
    local_spark.spark().sparkContext.cancelAllJobs()  # as the handler of PySpark does
    wait_until(lambda: len(commands.lines(said)) == 2, 60)
    Path(go).touch()
    assert states(run.wait(60)) == {"job": "DONE"}
    assert row_of(run, "job")["attempt"] == 1
