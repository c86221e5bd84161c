"""Bad records of durable jobs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyrite
from pyrite import Instance, JobConfig, JobFailed, Pipeline, Retry
from pyrite import processors as p
from tests.bad_records.test_on_spark import read_letters

SECONDS = 60


@pytest.fixture(scope="module")
def pyr(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with pyrite.instance(durable=tmp_path_factory.mktemp("jobs"), peers=2) as instance:
        yield instance


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


def pipe_of(on_error: pyrite.OnError, folder: Path) -> Pipeline:
    """A job whose peer is killed once in the middle of it."""
    marker = str(folder / "killed")

    def inverse(n: int) -> str:
        if n == 1500 and not os.path.exists(marker):
            with open(marker, "w"):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        return str(n * 500 // (n % 500))

    pipe = Pipeline()
    numbers = pipe.read_from(range(1, 3000))
    strings = numbers.map(inverse, name="invert", on_error=on_error)
    strings.write_to(p.write_files(folder / "out"))
    return pipe


def test_a_killed_job_has_each_dead_letter_once(pyr: Instance, tmp_path: Path) -> None:
    bad = pyrite.dead_letter(p.write_files(tmp_path / "bad", format="jsonl"), at_most=5)
    execution = pyr.new_durable_job(pipe_of(bad, tmp_path), JobConfig(members=1)).execute()
    execution.result(SECONDS)
    assert (tmp_path / "killed").exists()
    found = read_letters(tmp_path / "bad")
    assert sorted(letter["item"] for letter in found) == [500, 1000, 1500, 2000, 2500]
    assert len({letter["traceback"] for letter in found}) == 1
    written = Pipeline().read_from(p.read_files(f"{tmp_path}/out/*")).collect()
    assert len(written) == 2994
    counts = execution.metrics()["invert"]
    assert (counts["received"], counts["emitted"], counts["dead_letters"]) == (2999, 2994, 5)


@pytest.mark.parametrize("at_most", [4, 0.001])
def test_too_many_bad_records_fail_a_durable_job(
    pyr: Instance, tmp_path: Path, at_most: int | float
) -> None:
    (tmp_path / "killed").touch()
    skip = pyrite.skip(at_most=at_most)
    execution = pyr.new_durable_job(pipe_of(skip, tmp_path), JobConfig(members=2)).execute()
    with pytest.raises(JobFailed, match=r"'invert' could not process 5 (of 2999 )?items") as failed:
        execution.result(SECONDS)
    assert failed.value.vertex == "invert"
    assert not list(tmp_path.glob("out/[!.]*"))  # peers remove the folder a moment later


def test_tasks_of_a_durable_job_share_a_sink_of_dead_letters(pyr: Instance) -> None:
    bad = pyrite.dead_letter(p.write_list("shared"))
    pipe = Pipeline()
    numbers = pipe.read_from(["1", "x", "2", "2"]).map(int, name="parse", on_error=bad)
    by_number = numbers.group_by(lambda n: n).count()
    by_number.map(lambda t: t[0] // (t[1] - 1), name="late", on_error=bad).write_to(
        p.write_list("numbers")
    )
    pyr.new_durable_job(pipe, JobConfig(members=2)).execute().result(SECONDS)
    assert list(pyr.list("numbers")) == [2]
    found = {(letter.vertex, letter.item) for letter in pyr.list("shared")}
    assert found == {("parse", "x"), ("late", (1, 1))}


def test_many_flat_maps_before_a_retry(pyr: Instance) -> None:
    pipe = Pipeline()
    stage = pipe.read_from([1, 2])
    for _ in range(8):
        stage = stage.flat_map(lambda n: [n])
    stage.map(abs, retry=Retry(1)).write_to(p.write_list("many"))
    pyr.new_durable_job(pipe, JobConfig(members=1)).execute().result(SECONDS)
    assert sorted(pyr.list("many")) == [1, 2]
