"""`inputs=`: parameters that get the results of jobs with any id, of several jobs, and any name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite import DAG, between
from pyrite import processors as p
from pyrite.workload import InvalidWorkload, Schedule, Workload
from pyrite.workload.input.jobs.inputs import interpret_inputs
from pyrite.workload.yaml_file import read_yaml
from tests.workload import commands
from tests.workload.conftest import states

IDS = st.text("ab-1.", min_size=1)


def problems_of(workload: Workload) -> list[str]:
    with pytest.raises(InvalidWorkload) as caught:
        workload.validate()
    return caught.value.problems


def loads(*ids: str) -> Workload:
    workload = Workload()
    for n, id in enumerate(ids):
        workload.add(id, abs, args=[n + 1])
    return workload


@given(st.dictionaries(st.text(), IDS | st.lists(IDS) | st.dictionaries(st.text(), IDS)))
def test_the_results_are_assembled_in_the_form_of_the_ids(given: dict[str, Any]) -> None:
    assembled = {one.parameter: one.assembled(one.ids) for one in interpret_inputs(given)}
    assert assembled == given


def test_inputs_of_every_form_reach_the_function(tmp_path: Path) -> None:
    workload = loads("load-2024", "load-2025")
    both = ["load-2025", "load-2024", "load-2025"]

    @workload.job(inputs={"day": "load-2024"})
    def one(day: int) -> int:
        return day * 10

    def show(**given: Any) -> dict[str, Any]:
        return given

    workload.add("many", lambda parts, one: (parts, one), inputs={"parts": both}, after="one")
    workload.add("dict", show, inputs={"any": {"x": "load-2025"}, "none": []}, kwargs={"a": 0})
    workload.add("twice", lambda one, other: one + other, inputs={"other": "one"})
    run = workload.run(workers=2, store=tmp_path / "run").wait()
    assert run.results["one"] == 10
    assert run.results["many"] == ([2, 1, 2], 10)
    assert run.results["dict"] == {"any": {"x": 2}, "none": [], "a": 0}
    assert run.results["twice"] == 20
    assert run.replay("many") == ([2, 1, 2], 10)
    assert ("load-2024", "one") in run._plan.edges
    assert set(states(workload.run(store=tmp_path / "run").wait()).values()) == {"SKIPPED"}


def test_inputs_in_a_table_with_a_schedule_and_in_a_file(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"job": "a-1", "command": "math:sqrt", "args": [4]},
        {"job": "sum", "command": "builtins:pow", "inputs": {"base": "a-1", "exp": "a-1"}},
    ]
    run = Workload.from_table(rows).run(
        Schedule([("a-1", "a-1"), ("sum", "sum")]), kind="transient", store=tmp_path / "run"
    )
    assert run.wait().results["sum"] == 4.0
    path = tmp_path / "jobs.yaml"
    path.write_text(
        "jobs:\n  a-1: {command: 'math:sqrt', args: [4]}\n"
        "  sum: {command: 'builtins:sum', args: [[1]], inputs: {start: a-1}}\n"
    )
    assert read_yaml(path).workload.run(store=tmp_path / "yaml").wait().results["sum"] == 3.0


def test_twenty_thousand_inputs_of_two_jobs(tmp_path: Path) -> None:
    """More than fit into the inbox of a worker."""
    workload = loads("a-1", "a-2")
    for n in range(2):
        parts = {"parts": ["a-1", "a-2"] * 10_000}
        workload.add(f"sum {n}", lambda parts: sum(parts), inputs=parts)
    run = workload.run(workers=1, store=tmp_path / "run").wait()
    assert run.results["sum 0"] == run.results["sum 1"] == 30_000
    assert not list((tmp_path / "run" / "plans").glob("*/inputs*"))


def test_other_inputs_of_the_same_jobs_run_the_job_again(tmp_path: Path) -> None:
    def result(inputs: dict[str, str]) -> int:
        workload = loads("a-1", "a-2").add("c", lambda x, y: x - y, inputs=inputs)
        schedule = Schedule([("a-1", "c"), ("a-2", "c")])
        return int(workload.run(schedule, store=tmp_path / "run").wait().results["c"])

    assert result({"x": "a-1", "y": "a-2"}) == -1
    assert result({"x": "a-2", "y": "a-1"}) == 1


def test_all_problems_of_inputs_are_listed() -> None:
    workload = loads("load-2024", "load-2025")
    workload.add("a", lambda day: day, inputs={"day": "load-2023"})
    workload.add("b", lambda day: day, inputs={"dya": "load-2024"}, kwargs={"day": 1})
    workload.add("c", lambda day: day, inputs={"day": "load-2024"}, kwargs={"day": 1})
    workload.add("d", ["true"], inputs={"day": "load-2024"})
    dag = DAG()
    source, sink = dag.vertex("in", p.read_items([1])), dag.vertex("out", p.write_list("out"))
    dag.edge(between(source, sink))
    workload.add("e", dag, inputs={"day": "load-2024"})
    workload.add("f", lambda day: day, inputs="load-2024")
    workload.add("g", lambda day: day, inputs={"day": [None]})
    workload.add("h", abs, inputs={"x": "load-2024"})
    workload.add("i", lambda day: day, inputs={"day": "load-2024"}, args=[1])
    workload.job(id="j", inputs=None)(commands.nothing)
    found = problems_of(workload)
    expected = [
        "job 'f' has inputs='load-2024'; inputs must be a dict",
        "job 'g' has inputs={'day': ...} with None; an input is the id of a job",
        "job 'j' has inputs=None; inputs must be a dict",
        "job 'a' has inputs={'day': ...} with 'load-2023', but there is no such job; did you",
        "has no parameter 'dya', but inputs gives it; did you mean 'day'?",
        "gets the parameter 'day' twice, from kwargs and from inputs",
        "job 'd' has inputs, but its command, ['true'], has no parameters to get them",
        "job 'e' has inputs, but its command, a DAG of 2 vertices, has no parameters",
        "has the parameter 'x', which cannot be given by name",
        "gets the parameter 'day' twice, from args and from inputs",
    ]
    for sentence in expected:
        assert any(sentence in problem for problem in found), (sentence, found)


def test_a_job_that_is_its_own_input_is_a_cycle() -> None:
    workload = Workload().add("a-1", lambda x: x, inputs={"x": "a-1"})
    assert problems_of(workload) == ["the schedule has a cycle: a-1 -> a-1"]
