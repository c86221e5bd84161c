"""Bad records of light jobs on members."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pyrite
from pyrite import Instance, JobFailed, Pipeline
from pyrite import processors as p
from tests.bad_records.light import letters


@pytest.fixture(scope="module")
def pyr() -> Iterator[Instance]:
    with pyrite.instance(members=2) as instance:
        yield instance


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


def pipe_of(on_error: pyrite.OnError, folder: Path) -> Pipeline:
    pipe = Pipeline()
    numbers = pipe.read_from([str(n) if n % 5 else "x" for n in range(50)])
    numbers.rebalance().map(int, on_error=on_error).map(str).write_to(p.write_files(folder / "out"))
    return pipe


def test_members_keep_dead_letters_and_count_them(pyr: Instance, tmp_path: Path) -> None:
    bad = pyrite.dead_letter(p.write_list("bad"), at_most=10)
    execution = pyr.new_light_job(pipe_of(bad, tmp_path)).execute()
    execution.result(timeout=30)
    assert [(letter.item, letter.vertex) for letter in letters(pyr)] == [("x", "map")] * 10
    counts = execution.metrics()["map"]
    assert (counts["received"], counts["emitted"], counts["dead_letters"]) == (50, 40, 10)
    assert len(counts["processors"]) == 2


@pytest.mark.parametrize("at_most", [9, 0.19])
def test_the_bad_records_of_all_members_are_judged_together(
    pyr: Instance, tmp_path: Path, at_most: int | float
) -> None:
    job = pyr.new_light_job(pipe_of(pyrite.skip(at_most=at_most), tmp_path))
    with pytest.raises(JobFailed, match=r"'map' could not process 10 (of 50 )?items") as failed:
        job.execute().result(timeout=30)
    assert failed.value.vertex == "map"
    assert not list(tmp_path.iterdir())
