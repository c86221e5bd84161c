"""Failures: jobs that fail, workers and masters that are killed or stopped, full disks."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyrite.workload import JobState, Run, RunBroken, Schedule, StoreInUse, Workload
from tests.workload import commands
from tests.workload.conftest import processes_of, row_of, states, wait_until


def pid_in(said: str) -> int:
    wait_until(lambda: bool(commands.lines(said)))
    return int(commands.lines(said)[-1])


# A worker dies


def test_a_job_whose_worker_is_killed_runs_elsewhere_within_a_second(tmp_path: Path) -> None:
    said, marker = str(tmp_path / "said"), str(tmp_path / "marker")
    run = (
        Workload()
        .add("job", commands.tell_and_hang_the_first_time, args=[said, marker])
        .run(store=tmp_path / "run", workers=2)
    )
    os.kill(pid_in(said), signal.SIGKILL)
    killed = time.time()
    run.wait()
    row = row_of(run, "job")
    assert (row["state"], row["attempt"]) == ("DONE", 2)
    assert row["started"] - killed < 1  # type: ignore[operator]


def test_jobs_that_wait_behind_the_one_that_dies_are_not_blamed(tmp_path: Path) -> None:
    workload = Workload().add(
        "killer", commands.kill_worker_the_first_time, args=[str(tmp_path / "marker")]
    )
    for n in range(30):
        workload.add(f"j{n}", commands.note, args=[str(tmp_path / "out"), f"j{n}"])
    run = workload.run(store=tmp_path / "run", workers=1).wait()
    assert {row["state"] for row in run.table()} == {JobState.DONE}
    assert [row["attempt"] for row in run.table()] == [2, *[1] * 30]
    assert sorted(commands.lines(tmp_path / "out")) == sorted(f"j{n}" for n in range(30))


def test_a_worker_killed_between_result_and_report_leaves_one_completion(tmp_path: Path) -> None:
    """The record of the job is in the segment, but the master never got its head."""
    out = str(tmp_path / "out")

    def die_when_reporting() -> str:
        write = os.write

        def killing_write(file: int, data: bytes) -> int:
            # os.write also writes the record to the segment; only the report goes to a pipe.
            if os.readlink(f"/proc/self/fd/{file}").startswith("pipe:"):
                os.kill(os.getpid(), signal.SIGKILL)
            return write(file, data)

        os.write = killing_write  # type: ignore[assignment]
        commands.note(out, "first")
        return "result"

    workload = Workload().add("first", die_when_reporting)
    workload.add("second", lambda first: commands.note(out, f"second got {first}"), after=["first"])
    run = workload.run(store=tmp_path / "run", workers=2).wait()
    assert commands.lines(out) == ["first", "second got result"]
    assert states(run) == {"first": "DONE", "second": "DONE"}
    assert row_of(run, "first")["attempt"] == 1


def test_a_job_that_always_kills_its_worker_is_given_up(tmp_path: Path) -> None:
    workload = Workload().add("killer", commands.kill_worker)
    workload.add("below", commands.nothing, after=["killer"]).add(
        "further below", commands.nothing, after=["below"]
    )
    workload.add("other", commands.nothing)
    run = workload.run(store=tmp_path / "run", crashes_max=2).wait()
    assert states(run) == {
        "killer": "CRASHED",
        "below": "BLOCKED",
        "further below": "BLOCKED",
        "other": "DONE",
    }
    row = row_of(run, "killer")
    assert row["attempt"] == 3
    assert "SIGKILL" in str(row["error"])
    assert [row["job"] for row in run.failed()] == ["killer"]


def test_a_job_that_ends_the_process_has_crashed(tmp_path: Path) -> None:
    run = (
        Workload()
        .add("leaver", os._exit, args=[0])
        .run(store=tmp_path / "run", crashes_max=0)
        .wait()
    )
    assert row_of(run, "leaver")["state"] == "CRASHED"
    assert "exit code 0" in str(row_of(run, "leaver")["error"])


# A worker hangs


def test_a_job_that_hangs_is_stopped_at_its_timeout_and_tried_again(tmp_path: Path) -> None:
    said, marker = str(tmp_path / "said"), str(tmp_path / "marker")
    workload = Workload().add(
        "job", commands.tell_and_hang_the_first_time, args=[said, marker], timeout=0.5, retries=1
    )
    for n in range(20):
        workload.add(f"j{n}", commands.nothing)
    run = workload.run(store=tmp_path / "run", workers=2).wait()
    assert {row["state"] for row in run.table()} == {JobState.DONE}
    assert row_of(run, "job")["attempt"] == 2
    assert not Path(f"/proc/{commands.lines(said)[0]}").exists()


def test_a_stopped_worker_is_killed_at_the_timeout_and_its_job_tried_again(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    workload = Workload().add(
        "job", commands.tell_and_wait, args=[said, go], timeout=1.5, retries=1
    )
    workload.add("other", commands.nothing)
    run = workload.run(store=tmp_path / "run", workers=2)
    stopped = pid_in(said)
    os.kill(stopped, signal.SIGSTOP)
    Path(go).touch()
    run.wait()
    assert states(run) == {"job": "DONE", "other": "DONE"}
    assert row_of(run, "job")["attempt"] == 2
    assert not Path(f"/proc/{stopped}").exists()


def test_a_job_that_always_hangs_is_a_timeout(tmp_path: Path) -> None:
    run = (
        Workload()
        .add("job", ["sleep", "1000"], timeout=0.3)
        .add("below", commands.nothing, after=["job"])
        .run(store=tmp_path / "run")
    )
    run.wait()
    assert states(run) == {"job": "TIMEOUT", "below": "BLOCKED"}
    assert "longer than its timeout of 0.3 s" in str(row_of(run, "job")["error"])


def test_a_job_that_waits_behind_a_long_one_goes_to_a_worker_that_is_idle(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    workload = Workload().add("long", commands.tell_and_wait, args=[said, go])
    for n in range(5):
        workload.add(f"j{n}", commands.note, args=[str(tmp_path / "out"), str(n)])
    run = workload.run(store=tmp_path / "run", workers=2)
    wait_until(lambda: len(commands.lines(tmp_path / "out")) == 5)
    Path(go).touch()
    run.wait()


# The master dies


def test_workers_of_a_killed_master_end_and_resume_runs_only_unfinished_jobs(
    tmp_path: Path,
) -> None:
    said, go, out = str(tmp_path / "said"), str(tmp_path / "go"), str(tmp_path / "out")
    workload = Workload().add("before", commands.note, args=[out, "before"])
    workload.add("during", commands.tell_and_wait, args=[said, go], after=["before"])
    workload.add("after", commands.note, args=[out, "after"], after=["during"])
    run = workload.run(store=tmp_path / "run", workers=2)
    pid_in(said)
    os.kill(run.pid, signal.SIGKILL)
    wait_until(lambda: not processes_of(tmp_path / "run"), 2)
    with pytest.raises(RunBroken, match="was killed before all jobs had ended"):
        run.wait()
    Path(go).touch()
    again = Run.resume(tmp_path / "run").wait()
    assert states(again) == {"before": "DONE", "during": "DONE", "after": "DONE"}
    assert commands.lines(out) == ["before", "after"]


def test_a_worker_that_is_stopped_or_holds_the_gil_does_not_outlive_its_master(
    tmp_path: Path,
) -> None:
    said = str(tmp_path / "said")

    def hold() -> None:
        commands.note(said, str(os.getpid()))
        sum(range(10**12))  # one call of C code, which holds the GIL

    run = (
        Workload()
        .add("hold", hold)
        .add("sleep", ["sleep", "1000"])
        .run(store=tmp_path / "run", workers=2)
    )
    pid_in(said)
    wait_until(lambda: any("sleep 1000" in command for _, command in processes_of(tmp_path)))
    os.kill(run.pid, signal.SIGKILL)
    wait_until(lambda: not processes_of(tmp_path), 2)


def test_a_second_master_is_refused(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    workload = Workload().add("job", commands.tell_and_wait, args=[said, go])
    run = workload.run(store=tmp_path / "run")
    with pytest.raises(StoreInUse, match="in use by another master"):
        workload.run(store=tmp_path / "run")
    with pytest.raises(StoreInUse, match=r"Run\.attach"):
        Run.resume(tmp_path / "run")
    Path(go).touch()
    assert run.wait().results["job"] == "done"
    assert len(commands.lines(said)) == 1


@pytest.mark.parametrize("times", [6, pytest.param(20, marks=pytest.mark.soak)])
def test_a_run_that_is_killed_again_and_again_ends_like_an_undisturbed_one(
    tmp_path: Path, times: int
) -> None:
    """Kills the master or a worker at random times, and resumes the run. Jobs that were recorded do
    not run again."""
    rng = random.Random(7)
    count, out = 200, str(tmp_path / "out")

    def work(n: int, sleep: float) -> int:
        time.sleep(sleep)
        commands.note(out, str(n))
        return n * n

    workload = Workload()
    edges = [
        (f"j{rng.randrange(n)}", f"j{n}") for n in range(1, count) for _ in range(rng.randrange(3))
    ]
    for n in range(count):
        workload.add(f"j{n}", work, args=[n, rng.random() * 0.06])
    schedule = Schedule([*edges, *((f"j{n}", f"j{n}") for n in range(count))])
    run = workload.run(schedule, workers=2, store=tmp_path / "run", crashes_max=100)
    kills = 0
    while kills < times and not run.wait_for_master(0.2 + rng.random() * 0.3):
        victims = (
            [run.pid]
            if kills % 4
            else [
                pid
                for pid, command in processes_of(tmp_path / "run")
                if '"workers.worker"' in command
            ]
        )
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        kills += 1
        if victims == [run.pid]:
            assert run.wait_for_master(5)
            recorded = {row["job"] for row in run.table() if row["state"].has_result}
            run = Run.resume(tmp_path / "run")
            assert recorded <= {row["job"] for row in run.table() if row["state"].has_result}
    assert kills == times
    run.wait()
    assert dict(run.results) == {f"j{n}": n * n for n in range(count)}
    assert {row["state"] for row in run.table()} == {JobState.DONE}
    ran = commands.lines(out)
    assert set(ran) == {str(n) for n in range(count)}
    assert (
        len(ran) <= count + 2 * kills
    )  # each kill may lose the jobs that the two workers were running


# A job raises


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("continue", {"fails": "FAILED", "below": "BLOCKED", "running": "DONE", "later": "DONE"}),
        (
            "abridge",
            {"fails": "FAILED", "below": "BLOCKED", "running": "DONE", "later": "CANCELLED"},
        ),
        (
            "stop",
            {"fails": "FAILED", "below": "BLOCKED", "running": "CANCELLED", "later": "CANCELLED"},
        ),
    ],
)
def test_the_effect_of_a_failed_job_on_the_other_jobs(
    tmp_path: Path, mode: str, expected: dict[str, str]
) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")

    def fail_when_the_other_runs() -> None:
        commands.wait_for(said)
        raise ValueError("on purpose")

    workload = (
        Workload()
        .add("fails", fail_when_the_other_runs)
        .add("running", commands.tell_and_wait, args=[said, go])
    )
    workload.add("below", commands.nothing, after=["fails"]).add(
        "later", commands.nothing, after=["running"]
    )
    run = workload.run(store=tmp_path / "run", workers=2, on_error=mode)  # type: ignore[arg-type]
    wait_until(lambda: states(run)["fails"] == "FAILED")
    Path(go).touch()
    run.wait()
    assert states(run) == expected
    assert len(run.failed()) == 1


def test_the_traceback_and_the_output_of_a_job_are_kept(tmp_path: Path) -> None:
    run = (
        Workload()
        .add("job", commands.fail, args=["so it goes"])
        .add("other", print, args=["other"])
        .run(store=tmp_path / "run", workers=1)
    )
    run.wait()
    assert row_of(run, "job")["error"] == "ValueError: so it goes"
    assert "commands.py" in run.traceback("job")
    assert "raise ValueError(message)" in run.traceback("job")
    assert "doing.py" not in run.traceback("job")
    assert run.log("job") == "about to fail\n"
    assert run.log("other") == "other\n"


def test_a_failed_job_is_tried_again_up_to_its_number_of_retries(tmp_path: Path) -> None:
    workload = Workload().add(
        "enough", commands.fail_until, args=[str(tmp_path / "a"), 2], retries=2
    )
    workload.add("too few", commands.fail_until, args=[str(tmp_path / "b"), 2], retries=1)
    run = workload.run(store=tmp_path / "run").wait()
    assert states(run) == {"enough": "DONE", "too few": "FAILED"}
    assert [row["attempt"] for row in run.table()] == [3, 2]
    assert row_of(run, "too few")["error"] == "RuntimeError: try 2"
    assert row_of(run, "enough")["error"] is None


@pytest.mark.parametrize("leave", [sys.exit, KeyboardInterrupt, GeneratorExit])
def test_a_job_that_raises_system_exit_or_keyboard_interrupt_has_failed(
    tmp_path: Path, leave: type[BaseException]
) -> None:
    def job() -> None:
        raise SystemExit(3) if leave is sys.exit else leave

    run = (
        Workload()
        .add("job", job)
        .add("other", commands.nothing)
        .run(store=tmp_path / "run", workers=1)
        .wait()
    )
    assert states(run) == {"job": "FAILED", "other": "DONE"}


# Values that cannot be pickled


def test_an_unpicklable_result_fails_its_job_with_the_reason(tmp_path: Path) -> None:
    run = (
        Workload()
        .add("job", commands.return_unpicklable)
        .add("other", commands.nothing)
        .run(store=tmp_path / "run")
        .wait()
    )
    assert states(run) == {"job": "FAILED", "other": "DONE"}
    assert "cannot be pickled (TypeError: this thing stays here)" in str(
        row_of(run, "job")["error"]
    )


def test_an_unpicklable_exception_fails_its_job_with_the_reason(tmp_path: Path) -> None:
    run = Workload().add("job", commands.raise_unpicklable).run(store=tmp_path / "run").wait()
    assert row_of(run, "job")["error"] == "UnpicklableError: cannot travel"


def test_a_result_that_cannot_be_loaded_fails_the_job_that_wants_it(tmp_path: Path) -> None:
    def make() -> object:
        class Grumpy:
            def __reduce__(self) -> tuple[Any, ...]:
                return int, ("not a number",)

        return Grumpy()

    run = (
        Workload()
        .add("a", make)
        .add("b", lambda a: a, after=["a"])
        .run(store=tmp_path / "run")
        .wait()
    )
    assert states(run) == {"a": "DONE", "b": "FAILED"}
    assert "the result of its upstream job 'a' cannot be loaded" in str(row_of(run, "b")["error"])


# Large output


def test_large_output_is_kept_and_does_not_block_the_job(tmp_path: Path) -> None:
    size = 1 << 20
    run = (
        Workload()
        .add("job", commands.print_much, args=[size])
        .add("other", print, args=["hello"])
        .run(store=tmp_path / "run")
        .wait()
    )
    log = run.log("job")
    assert (log.count("x"), log.count("y"), log.count("z")) == (size, size, size)
    assert run.log("other") == "hello\n"


def test_the_output_of_a_job_that_crashed_is_kept(tmp_path: Path) -> None:
    def job() -> None:
        print("last words")
        commands.kill_worker()

    run = Workload().add("job", job).run(store=tmp_path / "run", crashes_max=0).wait()
    assert run.log("job") == "last words\n"


# Disks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A separate file system with a size of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True
    ).returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_breaks_the_run_with_a_clear_error_and_keeps_what_was_recorded(
    small_disk: Path, tmp_path: Path
) -> None:
    workload = Workload().add("small", lambda: "result")
    workload.add("large", lambda: os.urandom(3_000_000), after=["small"])
    run = workload.run(store=small_disk / "run")
    with pytest.raises(RunBroken, match=r"No space left on device.*resume"):
        run.wait()
    assert run.results["small"] == "result"
    attached = Run.attach(small_disk / "run")
    assert attached.results["small"] == "result"
    assert states(attached)["large"] != "DONE"


def test_a_disk_that_jobs_fill_breaks_the_run_with_a_clear_error(small_disk: Path) -> None:
    workload = Workload()
    for n in range(50):
        workload.add(f"j{n}", os.urandom, args=[60_000])
    run = workload.run(store=small_disk / "run", workers=2)
    with pytest.raises(RunBroken, match="cannot write to the store"):
        run.wait()
    done = [row["job"] for row in run.table() if row["state"] == "DONE"]
    assert done
    assert all(len(run.results[job]) == 60_000 for job in done)
    subprocess.run(["mount", "-o", "remount,size=50m", small_disk], check=True)
    again = Run.resume(small_disk / "run").wait()
    assert {row["state"] for row in again.table()} == {JobState.DONE}


def test_a_disk_that_cannot_be_written_to_is_a_clear_error_and_can_be_read(
    small_disk: Path,
) -> None:
    workload = Workload().add("job", lambda: "result")
    workload.run(store=small_disk / "run").wait()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(RunBroken, match="Read-only file system"):
        workload.run(store=small_disk / "run")
    with pytest.raises(RunBroken, match="Read-only file system"):
        workload.run(store=small_disk / "other")
    assert Run.attach(small_disk / "run").results["job"] == "result"
    assert states(Run.attach(small_disk / "run")) == {"job": "DONE"}


# Cancel


def test_cancel_stops_running_jobs_and_starts_no_others(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    workload = (
        Workload()
        .add("done", commands.nothing)
        .add("job", commands.tell_and_wait, args=[said, go], after=["done"])
    )
    workload.add("program", ["sleep", "1000"]).add("below", commands.nothing, after=["job"])
    run = workload.run(store=tmp_path / "run", workers=2)
    pid_in(said)
    started = time.monotonic()
    run.cancel()
    assert time.monotonic() - started < 3
    assert states(run) == {
        "done": "DONE",
        "job": "CANCELLED",
        "program": "CANCELLED",
        "below": "CANCELLED",
    }
    assert run.wait().status.phase == "cancelled"
    Path(go).touch()
    assert not processes_of(tmp_path)


def test_cancel_right_after_the_start(tmp_path: Path) -> None:
    run = Workload().add("job", ["sleep", "1000"]).run(store=tmp_path / "run")
    run.cancel()
    assert states(run) == {"job": "CANCELLED"}
    assert run.wait().status.phase == "cancelled"


def test_processes_that_a_job_leaves_running_end_with_its_worker(tmp_path: Path) -> None:
    def start_and_leave() -> int:
        return subprocess.Popen(["sleep", "1000"]).pid

    run = Workload().add("job", start_and_leave).run(store=tmp_path / "run").wait()
    wait_until(lambda: not Path(f"/proc/{run.results['job']}").exists(), 5)
