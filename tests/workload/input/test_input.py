"""The user's input: tables, schedules and commands. All problems are reported together, before any
process starts."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import polars
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite import DAG
from pyrite.workload import InvalidWorkload, Schedule, Workload
from pyrite.workload.input.schedule import find_cycle, in_order, remaining_paths, upstream_of
from tests.workload import commands

ROWS = [
    {"from": "a", "to": "b"},
    {"from": "b", "to": "c"},
    {"from": "d", "to": "d"},
    {"from": "a", "to": "b"},
]


def problems_of(jobs: Any, edges: Any = None, **options: Any) -> list[str]:
    with pytest.raises(InvalidWorkload) as caught:
        run(jobs, edges, options)
    return caught.value.problems


def run(jobs: Any, edges: Any, options: dict[str, Any]) -> None:
    workload = jobs if isinstance(jobs, Workload) else Workload.from_table(jobs)
    workload.run(None if edges is None else Schedule.from_table(edges), **options)


def jobs(*ids: str) -> list[dict[str, Any]]:
    return [{"job": id, "command": commands.nothing} for id in ids]


@pytest.mark.parametrize("kind", [set, frozenset])
def test_a_set_of_upstream_jobs_has_an_order_that_does_not_depend_on_hashes(kind: Any) -> None:
    ids = [f"job-{n}" for n in range(10, 30)]
    (job,) = Workload().add("last", commands.nothing, after=kind(ids)).jobs
    assert job.after == tuple(ids)


@pytest.mark.parametrize(
    "table",
    [
        ROWS,
        {"from": [r["from"] for r in ROWS], "to": [r["to"] for r in ROWS]},
        pd.DataFrame(ROWS),
        polars.DataFrame(ROWS),
        pa.Table.from_pylist(ROWS),
        (row for row in ROWS),
    ],
    ids=["dicts", "columns", "pandas", "polars", "Arrow", "generator"],
)
def test_a_schedule_from_any_table(table: Any) -> None:
    schedule = Schedule.from_table(table)
    assert schedule.edges == [("a", "b"), ("b", "c")]
    assert list(schedule.ids) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "make",
    [pd.DataFrame, polars.DataFrame, lambda rows: pa.Table.from_pylist(rows)],
    ids=["pandas", "polars", "Arrow"],
)
def test_a_workload_from_any_table(make: Any, tmp_path: Path) -> None:
    rows = [
        {"job": "a", "command": "math:sqrt", "args": [16.0], "retries": None, "priority": 1},
        {"job": "b", "command": "math:sqrt", "args": [9.0], "retries": 2, "priority": None},
    ]
    found = Workload.from_table(make(rows)).jobs
    assert [(job.id, list(job.args), job.retries, job.priority) for job in found] == [
        ("a", [16.0], 0, 1),
        ("b", [9.0], 2, 0),
    ]


def test_all_problems_are_reported_together() -> None:
    table = [
        *jobs("a", "a", "b", "c"),
        {"job": "locked", "command": threading.Lock().acquire},
        {"job": "odd", "command": 17},
        {"job": "missing", "command": "nowhere.at_all:f"},
        {"job": "shell", "command": "rm -rf x"},
        {"job": "late", "command": commands.nothing, "timeout": -1, "retries": 1.5, "pool": "db"},
        {"job": "hungry", "command": commands.note},
    ]
    edges = [{"from": "b", "to": "c"}, {"from": "c", "to": "b"}, {"from": "a", "to": "z"}]
    found = "\n".join(problems_of(table, edges))
    for part in [
        "2 jobs have the id 'a'",
        "'z' is in the schedule but not in the workload",
        "'locked' is in the workload but not in the schedule",
        "the schedule has a cycle: b -> c -> b",
        "the command of job 'locked' cannot be pickled",
        "the command of job 'odd' must be a function",
        "the command of job 'missing' is 'nowhere.at_all:f', which cannot be imported",
        "the command of job 'shell' must have the form 'package.module:function'; got 'rm -rf x'",
        "job 'late' has timeout=-1",
        "job 'late' has retries=1.5",
        "job 'late' is in the pool 'db', which has no size",
        "<function note, commands.py line",
        "has a parameter 'path' without a value",
    ]:
        assert part in found, part


def test_nothing_is_started_or_written_if_something_is_wrong(tmp_path: Path) -> None:
    problems_of(jobs("a", "a"), store=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([{"id": "a", "command": print}], "has no column 'job'"),
        ([{"job": "a", "command": print, "retires": 3}], "did you mean 'retries'"),
        ("jobs.csv", "must be a list of dicts"),
        ([{"job": None, "command": print}], "row 0 of the workload: 'job' must be the id of a job"),
        ([{"job": "", "command": print}], "is empty"),
        ([["a", print]], "row 0 of the workload must be a dict"),
        ({"job": ["a", "b"], "command": [print]}, "different lengths"),
        ({"job": "a", "command": 3}, "the column 'job' of the workload must be a list; got 'a'"),
        ([], "the workload has no jobs"),
        ([{"job": "a", "command": []}], "empty list"),
        ([{"job": "a", "command": None}], "got None"),
        (
            [{"job": "a", "command": commands.nothing, "args": [1]}],
            "takes 0 positional arguments, but args has 1",
        ),
        (
            [{"job": "a", "command": commands.note, "kwargs": {"path": "x", "lime": "y"}}],
            "has no parameter 'lime'",
        ),
        ([{"job": "a", "command": ["ls"], "args": [1]}], "takes no arguments"),
        ([{"job": "a", "command": commands.nothing, "light": True}], "which is for DAGs only"),
        ([{"job": "a", "command": DAG()}], "is a DAG that is not valid: the DAG is empty"),
    ],
)
def test_bad_tables_are_explained(table: Any, message: str) -> None:
    assert message in "\n".join(problems_of(table))


def test_bad_schedules_are_explained() -> None:
    assert "has no column 'to'" in problems_of(jobs("a"), [{"from": "a"}])[0]
    assert "'to' must be the id of a job" in problems_of(jobs("a"), [{"from": "a", "to": None}])[0]
    with pytest.raises(InvalidWorkload, match="must be a pair"):
        Schedule([("a",)])  # type: ignore[list-item]
    with pytest.raises(InvalidWorkload, match="made from pairs"):
        Schedule(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidWorkload, match="must be a Schedule"):
        Workload.from_table(jobs("a")).run([("a", "a")])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers must be"),
        ({"kind": "eternal"}, "kind must be"),
        ({"on_error": "panic"}, "on_error must be"),
        ({"crashes_max": -1}, "crashes_max must be"),
        ({"pools": {"db": 0}}, "pool 'db'"),
        ({"executor": 3}, "executor= is for transient"),
        ({"max_jobs": 3}, "max_jobs= is for transient"),
        ({"launcher": "ssh"}, "that behaves like map()"),
    ],
)
def test_bad_options_are_explained(options: dict[str, Any], message: str) -> None:
    assert message in "\n".join(problems_of(jobs("a"), **options))


@pytest.mark.parametrize("wrong", [{"args": 3}, {"kwargs": 3}])
def test_wrong_arguments_of_a_decorated_job_are_explained(wrong: Any) -> None:
    workload = Workload()
    workload.job(**wrong)(commands.nothing)
    with pytest.raises(InvalidWorkload, match="args must be a"):
        workload.validate()


def test_a_parameter_that_names_no_job_is_explained() -> None:
    workload = Workload()

    @workload.job
    def first() -> int:
        return 1

    @workload.job
    def second(fisrt: int, size: int = 3) -> int:
        return fisrt + size

    assert "has a parameter 'fisrt' without a value" in problems_of(workload)[0]


def test_a_misspelt_upstream_job_is_explained() -> None:
    assert problems_of(Workload().add("first", print).add("second", print, after="frist")) == [
        "job 'second' has after='frist', but there is no such job; did you mean 'first'?"
    ]


def test_an_option_that_does_not_exist_is_explained() -> None:
    with pytest.raises(TypeError, match="a job has no option 'retires'"):
        Workload().add("a", print, retires=3)


def test_building_and_validating_is_linear_in_the_number_of_jobs() -> None:
    """With a long chain of jobs, the code must neither recurse once per job nor loop over all jobs
    once per job."""
    count = 20_000
    schedule = Schedule([(f"j{n}", f"j{n + 1}") for n in range(count - 1)])
    Workload.from_table([{"job": f"j{n}", "command": lambda: None} for n in range(count)]).validate(
        schedule
    )


@given(st.integers(1, 20), st.data())
def test_the_order_has_every_job_after_its_upstream_jobs_or_there_is_a_cycle(
    count: int, data: st.DataObject
) -> None:
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=25)) if pairs else []
    upstream, downstream = upstream_of(count, edges)
    order = in_order(upstream, downstream)
    place = {job: n for n, job in enumerate(order)}
    assert all(place[a] < place[b] for a, b in edges if b in place)
    if len(order) < count:
        cycle = find_cycle(upstream, set(range(count)) - set(order))
        assert cycle[0] == cycle[-1]
        assert len(cycle) > 2
        assert all(pair in edges for pair in itertools.pairwise(cycle))
    else:
        remaining = remaining_paths(order, downstream, dict.fromkeys(range(count), 1.0))
        assert all(remaining[a] >= remaining[b] + 1 for a, b in edges)
