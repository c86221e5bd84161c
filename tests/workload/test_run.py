"""Runs without failures: results, order, tables, drawings, logs, jobs that are up to date."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrite import DAG, between
from pyrite import processors as p
from pyrite.workload import JobState, NoResult, Run, Schedule, Workload
from tests.workload import commands
from tests.workload.conftest import row_of, states

DIAMOND = [{"from": pair[0], "to": pair[1]} for pair in ("ab", "ac", "bd", "cd")]


def diamond() -> Workload:
    workload = Workload()

    @workload.job
    def a() -> int:
        return 2

    @workload.job
    def b(a: int) -> int:
        return a + 1

    @workload.job
    def c(a: int) -> int:
        return a * 10

    @workload.job
    def d(b: int, c: int) -> int:
        return b + c

    return workload


def test_results_go_to_the_parameters_that_are_named_after_upstream_jobs(tmp_path: Path) -> None:
    jobs = [
        {"job": "a", "command": lambda: 2},
        {"job": "b", "command": lambda a: a + 1},
        {"job": "c", "command": lambda a, factor: a * factor, "kwargs": {"factor": 10}},
        {"job": "d", "command": lambda b, c: b + c},
    ]
    run = Workload.from_table(jobs).run(
        Schedule.from_table(DIAMOND), workers=2, kind="persistent", store=tmp_path / "run"
    )
    assert run.wait() is run
    assert run.results["d"] == 23
    assert dict(run.results) == {"a": 2, "b": 3, "c": 20, "d": 23}
    assert run.failed() == []


def test_the_decorator_takes_the_parameters_as_the_upstream_jobs(tmp_path: Path) -> None:
    run = diamond().run(workers=2, store=tmp_path / "run").wait()
    assert run.results["d"] == 23
    ended = {row["job"]: row["ended"] for row in run.table()}
    started = {row["job"]: row["started"] for row in run.table()}
    assert all(ended[row["from"]] <= started[row["to"]] for row in DIAMOND)


def test_the_table_has_a_row_for_each_job(tmp_path: Path) -> None:
    run = diamond().run(workers=2, store=tmp_path / "run").wait()
    assert [row["job"] for row in run.table()] == ["a", "b", "c", "d"]
    row = run.table()[0]
    assert row["state"] == "DONE"
    assert row["attempt"] == 1
    assert row["error"] is None
    assert row["worker"].startswith("w")
    assert row["seconds"] == row["ended"] - row["started"]


def test_without_a_schedule_all_jobs_are_independent(tmp_path: Path) -> None:
    run = Workload.from_table([{"job": str(n), "command": os.getpid} for n in range(20)]).run(
        workers=2, store=tmp_path / "run"
    )
    assert len(run.wait().results) == 20
    assert os.getpid() not in run.results.values()


def test_ids_may_be_numbers_of_a_data_frame(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "job": [1, 2],
            "command": [commands.nothing, commands.nothing],
            "retries": [None, 2],
            "timeout": [None, 9.5],
        }
    )
    run = Workload.from_table(frame).run(
        Schedule.from_table(pd.DataFrame({"from": [1], "to": [2]})), store=tmp_path / "run"
    )
    assert states(run.wait()) == {"1": "DONE", "2": "DONE"}
    assert run.results[1] is None  # type: ignore[index]


def test_commands_of_every_kind(tmp_path: Path) -> None:
    dag = DAG()
    numbers = dag.vertex("numbers", p.read_items(range(5)))
    squares = dag.vertex("squares", p.map(lambda n: (n, n * n)))
    sink = dag.vertex("sink", p.write_map("squares"))
    dag.edge(between(numbers, squares))
    dag.edge(between(squares, sink))
    workload = (
        Workload()
        .add("function", max, args=[3, 9])
        .add("reference", "math:sqrt", args=[16])
        .add("program", [sys.executable, "-c", "print('from a program')"])
        .add("dag", dag, light=True)
    )
    run = workload.run(workers=2, store=tmp_path / "run").wait()
    assert dict(run.results) == {
        "function": 9,
        "reference": 4.0,
        "program": 0,
        "dag": {"squares": {n: n * n for n in range(5)}},
    }
    assert run.log("program") == "from a program\n"


def test_tables_and_paths_come_back_as_they_were(tmp_path: Path) -> None:
    import polars
    import pyarrow as pa

    file = tmp_path / "out.txt"
    values: dict[str, Any] = {
        "frame": pd.DataFrame({"n": [1, 2], "t": ["x", "y"]}, index=[5, 7]),
        "mixed": pd.DataFrame({"m": [1, "x", (2,)]}),
        "polars": polars.DataFrame({"n": [1, 2]}),
        "arrow": pa.table({"n": [1, 2]}),
        "large": b"x" * 3_000_000,
        "path": file,
    }
    file.write_text("content")
    workload = Workload()
    for name, value in values.items():
        workload.add(name, lambda value: value, args=[value])
        workload.add(f"same {name}", lambda value, **rest: repr(type(value)), args=[value])
    run = workload.run(workers=2, store=tmp_path / "run").wait()
    assert not run.failed(), run.failed()
    pd.testing.assert_frame_equal(run.results["frame"], values["frame"])
    pd.testing.assert_frame_equal(run.results["mixed"], values["mixed"])
    assert run.results["polars"].equals(values["polars"])
    assert run.results["arrow"] == values["arrow"]
    assert run.results["large"] == values["large"]
    assert run.results["path"] == file


def test_unknown_jobs_and_missing_results_are_explained(tmp_path: Path) -> None:
    run = Workload().add("broken", commands.fail).run(store=tmp_path / "run").wait()
    with pytest.raises(
        NoResult,
        match=r"job 'broken' has no result; its state is FAILED \(ValueError: on purpose\)",
    ):
        run.results["broken"]
    with pytest.raises(
        KeyError, match="there is no job 'brokn' in this run; did you mean 'broken'"
    ):
        run.results["brokn"]
    assert run.results.get("broken") is None
    assert "broken" in run.failed()
    assert "other" not in run.failed()


def test_another_handle_can_be_attached_to_a_run(tmp_path: Path) -> None:
    said, go = str(tmp_path / "said"), str(tmp_path / "go")
    run = Workload().add("job", commands.tell_and_wait, args=[said, go]).run(store=tmp_path / "run")
    commands.wait_for(said)
    other = Run.attach(tmp_path / "run")
    commands_seen = states(other)
    assert commands_seen["job"] in ("RUNNING", "READY", "WAITING")
    assert not other.has_ended
    Path(go).touch()
    assert other.wait().results["job"] == "done"
    assert run.wait().has_ended


def test_the_graph_is_coloured_by_state(tmp_path: Path) -> None:
    run = diamond().add("broken", commands.fail).run(store=tmp_path / "run").wait()
    assert 'v0["a<br/>DONE"]' in run.to_mermaid()
    assert "fillcolor" in run.to_dot()
    assert '"a" -> "b"' in run.to_dot()
    assert run.to_svg().count("<rect") == 5
    colors = {line.split("fill:")[1] for line in run.to_mermaid().splitlines() if "fill:" in line}
    assert len(colors) == 2


def test_replay_runs_one_job_in_this_process_with_its_inputs(tmp_path: Path) -> None:
    workload = Workload()
    workload.add("a", lambda: [1, 2, 0])
    workload.add("b", lambda a: [6 // n for n in a], after=["a"])
    run = workload.run(store=tmp_path / "run").wait()
    assert run.failed()[0]["error"] == "ZeroDivisionError: integer division or modulo by zero"
    with pytest.raises(ZeroDivisionError):
        run.replay("b")
    assert run.replay("a") == [1, 2, 0]


def test_lengths_gives_the_duration_and_the_critical_path(tmp_path: Path) -> None:
    length, longest = diamond().run(workers=1, store=tmp_path / "run").wait().lengths()
    assert 0 < longest <= length


def test_a_timeout_of_wait_leaves_the_run_alone(tmp_path: Path) -> None:
    go = str(tmp_path / "go")
    run = Workload().add("job", commands.wait_for, args=[go]).run(store=tmp_path / "run")
    with pytest.raises(TimeoutError, match="it continues"):
        run.wait(0.05)
    Path(go).touch()
    assert states(run.wait()) == {"job": "DONE"}


def test_a_pool_of_one_runs_one_at_a_time(tmp_path: Path) -> None:
    jobs = [
        {
            "job": str(n),
            "command": commands.note,
            "args": [str(tmp_path / "out"), str(n)],
            "pool": "one",
        }
        for n in range(10)
    ]
    run = Workload.from_table(jobs).run(workers=2, store=tmp_path / "run", pools={"one": 1}).wait()
    spans = sorted((row["started"], row["ended"]) for row in run.table())
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


# Up to date


def counted(tmp_path: Path, factor: int = 2, word: str = "x") -> Workload:
    log = str(tmp_path / "ran")

    def helper(n: int) -> int:
        return n * factor

    def a() -> int:
        commands.note(log, "a")
        return helper(1)

    def b(a: int) -> int:
        commands.note(log, "b")
        return a % 2

    def c(b: int, word: str) -> str:
        commands.note(log, "c")
        return word * b

    return (
        Workload()
        .add("a", a)
        .add("b", b, after=["a"])
        .add("c", c, after=["b"], kwargs={"word": word})
    )


def test_jobs_that_are_up_to_date_are_skipped(tmp_path: Path) -> None:
    counted(tmp_path).run(store=tmp_path / "run").wait()
    run = counted(tmp_path).run(store=tmp_path / "run").wait()
    assert states(run) == {"a": "SKIPPED", "b": "SKIPPED", "c": "SKIPPED"}
    assert commands.lines(tmp_path / "ran") == ["a", "b", "c"]
    assert dict(run.results) == {"a": 2, "b": 0, "c": ""}


def test_a_changed_helper_reruns_its_job_but_not_its_downstream_jobs_if_the_result_is_equal(
    tmp_path: Path,
) -> None:
    counted(tmp_path).run(store=tmp_path / "run").wait()
    run = counted(tmp_path, factor=4).run(store=tmp_path / "run").wait()
    assert states(run) == {"a": "DONE", "b": "DONE", "c": "SKIPPED"}
    assert run.results["a"] == 4


def test_a_changed_argument_runs_only_that_job_again(tmp_path: Path) -> None:
    counted(tmp_path).run(store=tmp_path / "run").wait()
    run = counted(tmp_path, word="y").run(store=tmp_path / "run").wait()
    assert states(run) == {"a": "SKIPPED", "b": "SKIPPED", "c": "DONE"}


def test_rerun_runs_everything(tmp_path: Path) -> None:
    counted(tmp_path).run(store=tmp_path / "run").wait()
    run = counted(tmp_path).run(store=tmp_path / "run", rerun=True).wait()
    assert states(run) == {"a": "DONE", "b": "DONE", "c": "DONE"}


def test_a_job_whose_result_was_removed_runs_again(tmp_path: Path) -> None:
    file = tmp_path / "made.txt"

    def make() -> Path:
        file.write_text("content")
        return file

    Workload().add("make", make).run(store=tmp_path / "run").wait()
    assert states(Workload().add("make", make).run(store=tmp_path / "run").wait()) == {
        "make": "SKIPPED"
    }
    file.unlink()
    assert states(Workload().add("make", make).run(store=tmp_path / "run").wait()) == {
        "make": "DONE"
    }
    assert file.exists()


def test_a_program_runs_again_after_its_script_was_edited(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    for text, state in [("print(1)", "DONE"), ("print(1)", "SKIPPED"), ("print(2)", "DONE")]:
        script.write_text(text)
        run = (
            Workload()
            .add("script", [sys.executable, str(script)])
            .run(store=tmp_path / "run")
            .wait()
        )
        assert states(run) == {"script": state}


def test_a_job_that_failed_runs_again(tmp_path: Path) -> None:
    marker = str(tmp_path / "marker")
    for state in (JobState.FAILED, JobState.DONE, JobState.SKIPPED):
        run = (
            Workload()
            .add("job", commands.fail_until, args=[marker, 1])
            .run(store=tmp_path / "run")
            .wait()
        )
        assert row_of(run, "job")["state"] is state


# Whole runs of random graphs


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = draw(st.integers(1, 15))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    return count, draw(st.lists(st.sampled_from(pairs), unique=True, max_size=30)) if pairs else []


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graphs())
def test_every_job_runs_once_and_none_before_its_upstream_jobs_ended(
    tmp_path_factory: pytest.TempPathFactory, graph: tuple[int, list[tuple[int, int]]]
) -> None:
    count, edges = graph
    folder = tmp_path_factory.mktemp("graph")
    out = str(folder / "out")
    jobs = [
        {"job": f"j{n}", "command": commands.note, "args": [out, f"j{n}"]} for n in range(count)
    ]
    schedule = Schedule(
        [*((f"j{a}", f"j{b}") for a, b in edges), *((f"j{n}", f"j{n}") for n in range(count))]
    )
    run = Workload.from_table(jobs).run(schedule, workers=2, store=folder / "run").wait()
    order = commands.lines(out)
    assert sorted(order) == sorted(f"j{n}" for n in range(count))
    assert all(order.index(f"j{a}") < order.index(f"j{b}") for a, b in edges)
    rows = {row["job"]: row for row in run.table()}
    assert all(rows[f"j{a}"]["ended"] <= rows[f"j{b}"]["started"] for a, b in edges)
    assert {row["state"] for row in rows.values()} == {JobState.DONE}
