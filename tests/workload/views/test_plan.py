"""What a run would do and why: it agrees with what the run does, says the reasons, and writes
nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from pyrite.errors import PyriteError
from pyrite.workload import Run, Workload
from tests.workload import commands


def total(above: Sequence[Any] = (), value: int = 0) -> int:
    return sum(one or 0 for one in above) + value


def double(above: Sequence[Any] = (), value: int = 0) -> int:
    return 2 * total(above, value)


def constant(above: Sequence[Any] = (), value: int = 0) -> int:
    return 7


def silent(above: Sequence[Any] = (), value: int = 0) -> None:
    pass


def lines_of(path: Path, above: Sequence[Any] = (), value: int = 0) -> int:
    return len(path.read_text().splitlines())


def writes(name: str) -> Path:
    Path(name).write_text("written")
    return Path(name)


FUNCTIONS = {f.__name__: f for f in (total, double, constant, silent)}

graphs = some.integers(1, 5).flatmap(
    lambda count: some.tuples(
        *(
            some.sets(some.integers(0, n - 1), max_size=3) if n else some.just(set())
            for n in range(count)
        )
    )
)
versions = some.tuples(some.sampled_from(sorted(FUNCTIONS)), some.integers(0, 1))


def workload_of(graph: Sequence[set[int]], chosen: Sequence[tuple[str, int]]) -> Workload:
    workload = Workload()
    for n, (above, (function, value)) in enumerate(zip(graph, chosen)):
        inputs = {"above": [f"j{a}" for a in sorted(above)]} if above else {}
        command = FUNCTIONS[function]
        workload.add(f"j{n}", command, kwargs={"value": value}, inputs=inputs)
    return workload


def ran(workload: Workload, store: Path, **options: Any) -> dict[str, str]:
    """Runs the workload with threads, which takes a tenth of the time of processes."""
    with ThreadPoolExecutor(2) as threads:
        run = workload.run(store=store, kind="transient", executor=threads, workers=2, **options)
        return {row["job"]: row["state"].value for row in run.wait(60).table()}


def content(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).digest())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".sqlite-shm"  # where SQLite counts its readers
    }


@settings(max_examples=15, deadline=None)
@given(
    graph=graphs,
    steps=some.lists(some.lists(versions, min_size=5, max_size=5), min_size=2, max_size=3),
)
def test_the_plan_agrees_with_the_run(
    graph: Sequence[set[int]],
    steps: list[list[tuple[str, int]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    store = tmp_path_factory.mktemp("plan") / "s"
    for chosen in [*steps, steps[0]]:
        workload = workload_of(graph, chosen)
        before = content(store)
        rows = {row["job"]: row for row in workload.plan(store).table()}
        assert content(store) == before
        for job, state in ran(workload, store).items():
            allowed = {"run": ("DONE",), "skip": ("SKIPPED",), "may run": ("DONE", "SKIPPED")}
            assert state in allowed[rows[job]["action"]], (job, rows[job])
        for n, above in enumerate(graph):
            row = rows[f"j{n}"]
            assert row["reasons"]
            if row["action"] == "may run":
                assert {rows[f"j{a}"]["action"] for a in above} != {"skip"}


def reasons(workload: Workload, store: Path, job: str, **options: Any) -> tuple[str, list[str]]:
    row = next(row for row in workload.plan(store, **options).table() if row["job"] == job)
    return row["action"], row["reasons"]


def test_each_reason_is_given(tmp_path: Path) -> None:
    store, file = tmp_path / "s", tmp_path / "raw.csv"
    file.write_text("a\n")

    def made(function: Any, value: int) -> Workload:
        workload = Workload().add("load", function, kwargs={"value": value})
        workload.add("count", lines_of, args=[file])
        workload.add("fails", commands.fail)
        return workload.add("sum", total, inputs={"above": ["load", "count"]}, after=["load"])

    first = made(total, 1)
    assert reasons(first, store, "load") == ("run", ["it never ran"])
    assert not store.exists()
    ran(first, store)
    assert reasons(first, store, "sum") == ("skip", ["it is up to date"])
    assert reasons(first, store, "fails")[1] == ["it has no result: it was FAILED in the last run"]
    assert reasons(made(total, 2), store, "load") == ("run", ["the argument value changed"])
    assert reasons(made(total, 2), store, "sum") == (
        "may run",
        ["its upstream job load would run"],
    )
    (why,) = reasons(made(double, 1), store, "load")[1]
    here = "tests.workload.views.test_plan"
    assert why == f"its command was {here}.total and is {here}.double"
    file.write_text("a\nb\n")
    assert reasons(first, store, "count") == ("run", [f"the file {file} changed"])
    assert reasons(first, store, "load", rerun=True) == ("run", ["rerun is True"])
    for segment in (store / "segments").iterdir():
        segment.unlink()
    assert reasons(first, store, "load") == ("run", ["its result is gone"])


def test_files_that_are_gone_or_changed_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "s"
    workload = Workload().add("out", writes, args=["out.txt"], files_out=["out.txt"])
    workload.add("path", writes, args=["path.txt"])
    ran(workload, store)
    assert {row.action for row in workload.plan(store)} == {"skip"}
    Path("out.txt").unlink()
    Path("path.txt").write_text("changed")
    assert reasons(workload, store, "out") == ("run", ["its output file out.txt is gone"])
    (why,) = reasons(workload, store, "path")[1]
    assert why == f"the file {tmp_path}/path.txt, which its result names, changed"


def test_a_part_is_planned_too(tmp_path: Path) -> None:
    workload = workload_of([set(), {0}, {1}], [("total", 1)] * 3)
    ran(workload, tmp_path / "s")
    changed = workload_of([set(), {0}, {1}], [("total", 2)] * 3)
    plan = changed.plan(tmp_path / "s", only=["j1"])
    assert [(row.job, row.action) for row in plan] == [("j0", "skip"), ("j1", "run")]
    assert "not selected" in plan.why("j0")


def test_a_plan_is_a_table_that_can_be_printed(tmp_path: Path) -> None:
    plan = workload_of([set(), {0}], [("total", 1)] * 2).plan(tmp_path / "s")
    assert str(plan).splitlines() == [
        "j0  run      it never ran",
        "j1  run      it never ran; its upstream job j0 would run",
        "2 to run, 0 that may run, 0 to skip",
    ]
    assert plan.why("j0") == "job 'j0' would run: it never ran"
    assert plan.counts() == {"run": 2, "may run": 0, "skip": 0}
    with pytest.raises(PyriteError, match=r"no job 'j11' in this plan; did you mean 'j1'\?"):
        plan.why("j11")
    many = workload_of([set()] * 300, [("total", 1)] * 300).plan(tmp_path / "s")
    assert "200 other jobs are not shown" in str(many)


def test_a_plan_can_be_made_while_a_run_holds_the_store(tmp_path: Path) -> None:
    said, go = tmp_path / "said", tmp_path / "go"
    workload = Workload().add("a", commands.tell_and_wait, args=[str(said), str(go)])
    run: Run = workload.run(workers=1, store=tmp_path / "s")
    commands.wait_for(str(said))
    assert [row.action for row in workload.plan(tmp_path / "s")] == ["run"]
    go.touch()
    run.wait(60).raise_for_failures()
    assert [row.action for row in workload.plan(tmp_path / "s")] == ["skip"]


def test_jobs_that_would_run_do_not_hide_those_that_are_up_to_date(tmp_path: Path) -> None:
    before = workload_of([set()] * 6, [("total", 0)] * 6)
    ran(before, tmp_path / "store")
    after = workload_of([set()] * 6, [("total", 1)] * 4 + [("total", 0)] * 2)
    actions = [row.action for row in after.plan(tmp_path / "store")]
    assert actions == ["run"] * 4 + ["skip"] * 2
