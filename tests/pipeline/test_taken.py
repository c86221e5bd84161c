"""A pipeline is taken wherever a DAG is."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyrite import Instance, InvalidDAG, Pipeline
from pyrite import processors as p
from pyrite.cli.app import app
from pyrite.workload import Workload

FLOW = """
from pyrite import Pipeline, processors as p

def make():
    pipe = Pipeline()
    pipe.read_from(["a b", "b"]).flat_map(str.split).write_to(p.write_list("words"))
    return pipe

pipe = make()
"""


def pipeline() -> Pipeline:
    pipe = Pipeline()
    pipe.read_from([1, 2]).map(str).write_to(p.write_list("out"))
    return pipe


def test_by_a_light_job(pyr: Instance) -> None:
    pyr.new_light_job(pipeline()).execute().result()
    assert pyr.list("out") == ["1", "2"]


def test_what_is_neither_a_dag_nor_a_pipeline_is_refused(pyr: Instance) -> None:
    with pytest.raises(Exception, match=r"got <Stage .*; end the stage with write_to\(sink\)"):
        pyr.new_light_job(Pipeline().read_from([1]))  # type: ignore[arg-type]
    with pytest.raises(Exception, match="a job is made of a DAG or a Pipeline; got 7"):
        pyr.new_light_job(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["pipe", "make"])
def test_by_the_command_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    runner = CliRunner()
    run = runner.invoke(app, ["run", "--light", f"{tmp_path}/flow.py:{name}"])
    assert (run.exit_code, "flat_map" in run.output) == (0, True)
    show = runner.invoke(app, ["show", f"{tmp_path}/flow.py:{name}", "--format", "mermaid"])
    assert "write_list" in show.output
    explain = runner.invoke(app, ["show", f"{tmp_path}/flow.py:{name}", "--explain"])
    assert explain.output == "stage 1 of 1\n1. read_items + flat_map + write_list: one loop\n"


def test_by_a_workload(tmp_path: Path) -> None:
    work = Workload.from_table([{"job": "words", "command": pipeline(), "light": True}])
    run = work.run(workers=1, store=tmp_path / "run").wait()
    assert run.results["words"] == {"out": ["1", "2"]}


def test_run_runs_all_sinks() -> None:
    seen: list[object] = []
    pipe = Pipeline()
    numbers = pipe.read_from([1])
    numbers.inspect(seen.append).write_to(p.noop())
    numbers.map(str).inspect(seen.append).write_to(p.noop())
    pipe.run()
    assert seen == [1, "1"]


def test_an_invalid_pipeline_is_refused_by_a_workload() -> None:
    pipe = Pipeline()
    pipe.read_from([1]).map(str)
    with pytest.raises(InvalidDAG):
        pipe.to_dag()
    with pytest.raises(Exception, match="leads to no sink"):
        Workload.from_table([{"job": "words", "command": pipe}]).run(workers=1)


def test_a_workload_does_not_run_a_pipeline_again_that_is_up_to_date(tmp_path: Path) -> None:
    def work() -> Workload:
        return Workload.from_table([{"job": "words", "command": pipeline(), "light": True}])

    work().run(workers=1, store=tmp_path / "run").wait()
    again = work().run(workers=1, store=tmp_path / "run").wait()
    assert [row["state"].name for row in again.table()] == ["SKIPPED"]
