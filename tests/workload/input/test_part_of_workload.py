"""Runs of a part of a workload: which jobs are selected, and what happens to the others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from pyrite.errors import InvalidWorkload
from pyrite.workload import Run, Workload
from pyrite.workload.input.part import Part, cut, selected
from pyrite.workload.input.plan import Plan
from pyrite.workload.input.planning import make_plan
from tests.workload import commands


def workload_of(edges: list[tuple[int, int]], count: int) -> Workload:
    workload = Workload()
    for n in range(count):
        workload.add(f"j{n}", commands.nothing, after=[f"j{a}" for a, b in edges if b == n])
    return workload


def plan_of(edges: list[tuple[int, int]], count: int) -> Plan:
    return make_plan(workload_of(edges, count).jobs, None)[0]


OF_OTHERS = ("upstream", "downstream", "order", "passed", "given", "left_out")
"""The fields of a plan that relate jobs to other jobs, which change when a plan is cut."""

counts = some.integers(1, 9)
graphs = counts.flatmap(
    lambda count: some.tuples(
        some.just(count),
        some.lists(
            some.tuples(some.integers(0, count - 1), some.integers(0, count - 1)).filter(
                lambda edge: edge[0] < edge[1]
            ),
            unique=True,
        )
        if count > 1
        else some.just([]),
        some.sets(some.integers(0, count - 1), min_size=1),
        some.sets(some.integers(0, count - 1), min_size=1),
    )
)


def ids(jobs: set[int]) -> list[str]:
    return [f"j{n}" for n in sorted(jobs)]


@given(graphs)
def test_from_is_closed_downwards_and_to_upwards(graph) -> None:  # type: ignore[no-untyped-def]
    count, edges, first, second = graph
    plan = plan_of(edges, count)
    downwards = selected(Part(from_=tuple(ids(first))), plan)
    upwards = selected(Part(to=tuple(ids(second))), plan)
    assert first <= downwards
    assert second <= upwards
    assert all(b in downwards for a, b in edges if a in downwards)
    assert all(a in upwards for a, b in edges if b in upwards)
    # nothing more: each other job is reached by an edge from a selected one
    assert all(any((a, n) in edges for a in downwards) for n in downwards - first)
    assert all(any((n, b) in edges for b in upwards) for n in upwards - second)
    assert selected(Part(only=tuple(ids(first))), plan) == first
    both = Part(from_=tuple(ids(first)), to=tuple(ids(second)))
    if downwards & upwards:
        assert selected(both, plan) == downwards & upwards
    else:
        with pytest.raises(InvalidWorkload, match="no job is selected by from_="):
            selected(both, plan)


def of_job(values: Any, job: int) -> Any:
    """What a field of a plan says of a job."""
    if isinstance(values, set):
        return job in values
    return values.get(job) if isinstance(values, dict) else values[job]


@given(graphs)
def test_a_plan_that_is_cut_keeps_what_is_known_of_its_jobs(graph) -> None:  # type: ignore[no-untyped-def]
    count, edges, chosen, _ = graph
    plan, book = make_plan(workload_of(edges, count).jobs, None)
    part, commands_of_it = cut(plan, book, chosen)
    names = set(ids(chosen))
    given = {part.ids[n] for n in part.given}
    assert set(part.ids) == names | given
    assert part.left_out == set(plan.ids) - names - given
    assert set(part.edges) == {edge for edge in plan.edges if edge[1] in names}
    assert given == {a for a, _ in part.edges} - names
    assert [part.ids[n] for n in part.order] == [
        plan.ids[n] for n in plan.order if plan.ids[n] in part.ids
    ]
    for n, id in enumerate(part.ids):
        old = plan.ids.index(id)
        for name in (field.name for field in fields(Plan) if field.name not in OF_OTHERS):
            assert of_job(getattr(plan, name), old) == of_job(getattr(part, name), n)
        assert commands_of_it.spans[2 * n : 2 * n + 2] == book.spans[2 * old : 2 * old + 2]
        assert sorted(part.downstream[n]) == [
            b for b in range(len(part.ids)) if (id, part.ids[b]) in part.edges
        ]


def test_unknown_jobs_and_options_that_exclude_each_other_are_refused() -> None:
    plan = plan_of([(0, 1)], 2)
    with pytest.raises(InvalidWorkload, match=r"to= names the job 'j11'.* did you mean 'j1'"):
        selected(Part(to=("j11",)), plan)
    with pytest.raises(InvalidWorkload, match="only= cannot be used together with from_= or to="):
        Part.of(only="j0", to=["j1"])
    with pytest.raises(InvalidWorkload, match="from_= must be a list of ids of jobs; got 3"):
        Part.of(from_=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidWorkload, match=r"no job is selected by only=\[\]"):
        selected(Part(only=()), plan)
    assert Part.of() is None


def chain() -> Workload:
    workload = Workload().add("a", max, args=[1, 2])
    return workload.add("b", abs_of, after="a").add("c", abs_of_b, after="b")


def abs_of(a: int) -> int:
    return abs(a)


def abs_of_b(b: int) -> int:
    return abs(b)


def run_of(store: Path, **options: Any) -> Run:
    """A run of the chain with threads, which start faster than processes."""
    with ThreadPoolExecutor(1) as threads:
        run = chain().run(store=store, kind="transient", executor=threads, workers=1, **options)
        return run.wait(60)


def outcome(run: Run) -> dict[str, tuple[str, bool]]:
    return {row["job"]: (row["state"].value, row["selected"]) for row in run.table()}


def test_a_part_runs_with_the_results_of_the_others_which_stay(tmp_path: Path) -> None:
    store = tmp_path / "s"
    run_of(store)
    run = run_of(store, only="b", rerun=True)
    assert outcome(run) == {"a": ("SKIPPED", False), "b": ("DONE", True)}
    assert run.raise_for_failures().results["b"] == 2
    run = run_of(store, from_=["b"], rerun=True)
    assert outcome(run) == {
        "a": ("SKIPPED", False),
        "b": ("DONE", True),
        "c": ("DONE", True),
    }
    run = run_of(store, to=["b"], rerun=True)
    assert outcome(run) == {"a": ("DONE", True), "b": ("DONE", True)}
    assert Run.prune(store).results == 0
    run = run_of(store)
    assert {state for state, _ in outcome(run).values()} == {"SKIPPED"}


def test_a_part_whose_upstream_results_are_missing_is_refused(tmp_path: Path) -> None:
    message = "job 'a' is not selected, but its result is needed by 'b', and it has no result in"
    with pytest.raises(InvalidWorkload, match=message):
        chain().run(store=tmp_path / "s", only=["b", "c"])
    assert not (tmp_path / "s").exists()
    with pytest.raises(InvalidWorkload, match=r"job 'b' is not selected.* give store="):
        chain().run(only="c")


def test_a_part_takes_the_result_of_its_own_workload_and_not_the_latest(tmp_path: Path) -> None:
    def workload(n: int) -> Workload:
        made = Workload().add("a", int, args=[n]).add("z", commands.nothing)
        return made.add("b", lambda a: a * 10, after="a")

    def run(n: int, **options: Any) -> Run:
        return (
            workload(n)
            .run(
                kind="transient",
                executor=lambda: ThreadPoolExecutor(1),
                store=tmp_path / "store",
                **options,
            )
            .wait()
        )

    run(1), run(2)
    assert run(1, only="b", rerun=True).results["b"] == 10
    assert run(2, only="b", rerun=True).results["b"] == 20
    run(1, only="z")  # after which the last run has no job 'a'
    assert run(1, only="b", rerun=True).results["b"] == 10


def test_a_job_that_is_not_selected_does_not_run_when_the_run_is_resumed(tmp_path: Path) -> None:
    def write() -> Path:
        path = tmp_path / "out"
        path.write_text("1")
        return path

    def fail(write: Path) -> None:
        raise ValueError

    options: dict[str, Any] = {
        "kind": "transient",
        "executor": lambda: ThreadPoolExecutor(1),
        "store": tmp_path / "store",
    }
    workload = Workload().add("write", write).add("fail", fail, after="write")
    workload.run(**options).wait()
    workload.run(**options, only="fail").wait()
    (tmp_path / "out").write_text("changed")
    with pytest.raises(
        InvalidWorkload, match="'write' is not selected, but its result is needed by 'fail'"
    ):
        Run.resume(tmp_path / "store", executor=options["executor"])
