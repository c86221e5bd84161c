"""Bad records of normal jobs, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyrite
from pyrite import Instance, JobConfig, JobFailed, Pipeline, Retry
from pyrite import processors as p
from tests.bad_records.light import line_of
from tests.bad_records.test_retries import file_flaky


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


def read_letters(folder: Path) -> list[dict[str, Any]]:
    return Pipeline().read_from(p.read_files(f"{folder}/*.jsonl", format="jsonl")).collect()


def pipe_of(folder: Path, **options: Any) -> Pipeline:
    """Skips in one stage, and keeps dead letters of two stages in one folder."""
    bad = pyrite.dead_letter(p.write_files(folder / "bad", format="jsonl"), **options)
    pipe = Pipeline()
    numbers = pipe.read_from([str(n) if n % 10 else "x" for n in range(100)])
    kept = numbers.map(int, on_error=bad).filter(lambda n: 15 // (n % 15), on_error=pyrite.skip())
    by_digit = kept.group_by(lambda n: n % 10).count().map(lambda t: 8 // (t[0] - 7), on_error=bad)
    by_digit.map(str).write_to(p.write_files(folder / "out"))
    return pipe


def test_dead_letters_of_two_stages_are_committed_with_the_output(
    local_spark: Instance, tmp_path: Path
) -> None:
    config = JobConfig(members=2)
    execution = local_spark.new_job(pipe_of(tmp_path), config).execute()
    execution.result(timeout=60)
    metrics = execution.metrics()
    found = read_letters(tmp_path / "bad")
    assert sorted(letter["item"] for letter in found if letter["vertex"] == "map") == ["x"] * 10
    assert [letter["item"][0] for letter in found if letter["vertex"] == "map-2"] == [7]
    assert (tmp_path / "out").is_dir()
    assert [metrics[name]["dead_letters"] for name in ("map", "map-2")] == [10, 1]
    assert metrics["filter"]["skipped"] == 3
    assert metrics["filter"]["received"] == 90


@pytest.mark.parametrize("at_most", [9, 0.05])
def test_too_many_bad_records_on_all_members_together_fail_the_job(
    local_spark: Instance, tmp_path: Path, at_most: int | float
) -> None:
    job = local_spark.new_job(pipe_of(tmp_path, at_most=at_most), JobConfig(members=2))
    with pytest.raises(JobFailed, match=r"'map' could not process 10 (of 100 )?items") as failed:
        job.execute().result(timeout=60)
    assert failed.value.vertex == "map"
    assert not list(tmp_path.iterdir())


def test_a_task_that_is_run_again_makes_the_same_dead_letters(
    local_spark: Instance, tmp_path: Path
) -> None:
    marker = str(tmp_path / "tried")

    def once_broken(n: int) -> int:
        if n == 7:
            with open(marker, "a") as file:
                file.write(".")
            with open(marker) as file:
                if len(file.read()) == 1:
                    raise SystemExit("the first attempt ends here")
        return n

    bad = pyrite.dead_letter(p.write_files(tmp_path / "bad", format="jsonl"))
    dag = line_of(
        ("numbers", p.read_items(range(10)), "fail"),
        ("invert", p.map(lambda n: (object(), 1 // (n % 3)) and n), bad),
        ("break", p.map(once_broken), "fail"),
        ("out", p.write_files(tmp_path / "out", format="jsonl"), "fail"),
    )
    local_spark.new_job(dag, JobConfig(members=1)).execute().result(timeout=60)
    assert Path(marker).read_text() == ".."
    assert sorted(letter["item"] for letter in read_letters(tmp_path / "bad")) == [0, 3, 6, 9]


def test_a_processor_of_ones_own_on_spark(local_spark: Instance) -> None:
    class Inverse(pyrite.AbstractProcessor):
        def try_process_0(self, item: int) -> None:
            self.emit(item)
            self.emit(6 // item)

    stage = Pipeline().read_from([0, 1, 2]).process(Inverse, on_error=pyrite.skip())
    assert sorted(stage.collect(on=local_spark)) == [1, 2, 3, 6]


def test_a_task_on_spark_tries_again(local_spark: Instance, tmp_path: Path) -> None:
    stage = Pipeline().read_from(range(10)).map(file_flaky(tmp_path), retry=Retry(1, wait=0.01))
    assert sorted(stage.rebalance().collect(on=local_spark)) == list(range(10))
    assert len(list(tmp_path.iterdir())) == 4


def test_a_data_frame_skips_but_keeps_no_dead_letters(local_spark: Instance) -> None:
    def dag(on_error: Any) -> pyrite.DAG:
        return line_of(("words", p.read_items(["1", "x"]), "fail"), ("n", p.map(int), on_error))

    spark = local_spark.spark()
    frame = dag(pyrite.skip()).to_dataframe(spark, "n long")
    assert [row.n for row in frame.collect()] == [1]
    with pytest.raises(pyrite.InvalidDAG, match="vertex 'n' keeps dead letters"):
        dag(pyrite.dead_letter(p.write_list("bad"))).to_dataframe(spark)


def test_lines_that_cannot_be_read_and_items_that_cannot_be_written_on_spark(
    local_spark: Instance, tmp_path: Path
) -> None:
    (tmp_path / "in.jsonl").write_text("1\n2\nx\n4\n")
    bad = pyrite.dead_letter(p.write_files(tmp_path / "bad", format="jsonl"), at_most=3)
    pipe = Pipeline()
    numbers = pipe.read_from(p.read_files(tmp_path / "in.jsonl", format="jsonl"), on_error=bad)
    texts = numbers.map(lambda n: "a\nb" if n == 2 else str(n))
    texts.write_to(p.write_files(tmp_path / "out"), on_error=bad)
    execution = local_spark.new_job(pipe, JobConfig(members=2)).execute()
    execution.result(timeout=60)
    found = {letter["vertex"]: letter["item"] for letter in read_letters(tmp_path / "bad")}
    line = {"path": str(tmp_path / "in.jsonl"), "line": 3, "text": "x"}
    assert found == {"read_files": line, "write_files": "a\nb"}
    assert execution.metrics()["read_files"]["dead_letters"] == 1
    assert sorted(Pipeline().read_from(p.read_files(tmp_path / "out/*")).collect()) == ["1", "4"]
