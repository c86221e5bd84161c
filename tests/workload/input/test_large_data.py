"""Large arguments: stored once, by content, without copies, and private to each job."""

from __future__ import annotations

import functools
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from pyrite.workload import Run, Workload
from pyrite.workload.input.commands.command_book import OpenCommandBook, data_used_by
from pyrite.workload.input.commands.large_data import LARGE, LargeData, Luggage, look_in, write_data
from pyrite.workload.workers.running.doing import load

SIZE = LARGE // 8


def change(values: Any, n: int) -> tuple[float, bool]:
    """The first element before the change, which another job must not have made."""
    before = float(values[0])
    values[0] = n
    return before, bool(values[0] == n)


def length(values: Any) -> int:
    return len(values)


def test_an_array_that_many_jobs_get_is_stored_once_and_each_may_change_its_own(
    tmp_path: Path,
) -> None:
    array = np.full(SIZE, 7.0)
    workload = Workload()
    for n in range(3):
        workload.add(f"job-{n}", change, args=[array, n])
    workload.add("copy", change, args=[array.copy()], kwargs={"n": 9})
    workload.add("bound", functools.partial(change, array, 5))
    run = workload.run(store=tmp_path / "run", workers=1).wait()
    assert set(dict(run.results).values()) == {(7.0, True)}
    (file,) = (tmp_path / "run" / "arguments").iterdir()
    assert file.stat().st_size == array.nbytes
    assert file.stat().st_mode & 0o777 == 0o600
    plan = tmp_path / "run" / "plans" / "000001"
    assert data_used_by(plan) == {file.name}
    assert all(path.stat().st_mode & 0o077 == 0 for path in plan.iterdir())
    assert run.replay("job-1") == (7.0, True)
    again = workload.run(store=tmp_path / "run", workers=1).wait()
    assert {row["state"].value for row in again.table()} == {"SKIPPED"}


@pytest.mark.parametrize("executor", [None, lambda: ThreadPoolExecutor(1)])
def test_transient_workers_get_large_arguments(tmp_path: Path, executor: Any) -> None:
    workload = (
        Workload().add("a", length, args=[np.zeros(SIZE)]).add("b", length, args=["x" * LARGE])
    )
    workload.run(kind="transient", workers=1, executor=executor, store=tmp_path / "run").wait()
    assert dict(Run.attach(tmp_path / "run").results) == {"a": SIZE, "b": LARGE}


def test_a_worker_elsewhere_gets_the_data_with_its_task(tmp_path: Path) -> None:
    (tmp_path / "plan").mkdir()
    array = np.arange(SIZE) + 0.5
    _, book = Workload().add("a", change, args=[array, 1])._plan(None)
    book.write(tmp_path / "plan", large=tmp_path / "data")
    opened = OpenCommandBook(tmp_path / "plan", large=tmp_path / "data")
    luggage = pickle.loads(pickle.dumps(opened.luggage_of(0, is_here=False)))
    (tmp_path / "data" / next(iter(luggage.contents))).unlink()
    with luggage.unpacked():
        read = lambda span: pickle.loads(opened.bytes_at(span))  # noqa: E731
        _, args, _ = load(opened.bytes_of(0), read, ())
    assert change(*args) == (0.5, True)
    opened.close()


@pytest.mark.parametrize(
    "value",
    [
        b"x" * LARGE,
        "x" * LARGE,
        bytearray(LARGE),
        list(range(LARGE)),
        np.ones((300, 300), order="F"),
        np.ones((600, 300))[::2],
        {"deep": [np.ones(SIZE)]},
        pd.DataFrame({"a": np.arange(SIZE), "b": "text"}),
        pa.table({"a": np.arange(SIZE)}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_large_values_come_back_as_they_were(tmp_path: Path, value: Any) -> None:
    large = LargeData()
    data, names = large.pickle(((value, 1), {"again": value}))
    assert len(data) < LARGE
    assert set(names) == set(large.contents)
    write_data(tmp_path, large.contents)
    look_in(tmp_path)
    (first, one), kwargs = pickle.loads(data)
    assert one == 1
    for got in (first, kwargs["again"]):
        assert type(got) is type(value)
        assert pickle.dumps(got) == pickle.dumps(pickle.loads(pickle.dumps(value)))


def test_a_read_only_array_stays_read_only(tmp_path: Path) -> None:
    array = np.ones(SIZE)
    array.flags.writeable = False
    large = LargeData()
    data, _ = large.pickle(((array,), {}))
    with Luggage(contents={name: bytes(part) for name, part in large.contents.items()}).unpacked():
        ((got,), _) = pickle.loads(data)
    assert not got.flags.writeable


def test_prune_removes_the_data_that_the_last_run_does_not_use(tmp_path: Path) -> None:
    for number in (1.0, 2.0):
        array = np.full(SIZE, number)
        run = Workload().add("a", length, args=[array]).run(store=tmp_path / "run", workers=1)
        run.wait()
    assert len(list((tmp_path / "run" / "arguments").iterdir())) == 2
    assert Run.prune(tmp_path / "run").bytes >= array.nbytes
    assert len(list((tmp_path / "run" / "arguments").iterdir())) == 1
    assert run.replay("a") == SIZE


def test_a_part_of_the_jobs_finds_its_data(tmp_path: Path) -> None:
    workload = Workload()
    for n in range(3):
        workload.add(f"job-{n}", change, args=[np.full(SIZE, n + 10.0), 1])
    run = workload.run(store=tmp_path / "run", workers=1, only=["job-2"]).wait()
    assert dict(run.results) == {"job-2": (12.0, True)}
    assert len(list((tmp_path / "run" / "arguments").iterdir())) == 1


def test_data_that_was_removed_fails_the_job_with_a_reason(tmp_path: Path) -> None:
    workload = Workload().add("a", length, args=[np.full(SIZE, 3.25)])
    run = workload.run(store=tmp_path / "run", workers=1).wait()
    (file,) = (tmp_path / "run" / "arguments").iterdir()
    file.unlink()
    with pytest.raises(Exception, match="data of an argument was removed from the store"):
        run.replay("a")


MEASURED = """
import resource
import numpy as np
from pyrite.workload import Workload

peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
array = np.ones(60_000_000 // 8)
workload = Workload()
for n in range(20):
    workload.add(f"job-{n}", len, args=[array])
before = peak()
workload.validate()
print(peak() - before)
"""


def test_planning_with_a_large_array_takes_no_memory_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True)
    assert float(done.stdout) < 30, done.stderr
