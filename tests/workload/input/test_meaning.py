"""Fingerprints are of what values mean: the same in each process, whatever was cached, and
different if the meaning differs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.workload.input.fingerprints import Fingerprints, digest_of
from tests.workload.input.test_fingerprints import compiled


def test_no_value_has_another_fingerprint_in_another_process() -> None:
    """Nor one that cannot be compared."""
    programs = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.workload.input.samples"],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    first, second = (json.loads(program.communicate(timeout=100)[0]) for program in programs)
    assert first == second
    assert [found for found in first.values() if len(found) > 1] == []


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]}, index=[5, 6, 7]),
    "polars": lambda: pl.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]}),
    "arrow": lambda: pa.table({"a": [1, 2, 3], "b": ["x", "y", None]}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_table_that_was_only_read_has_the_same_fingerprint(name: str) -> None:
    table = FRAMES[name]()
    before = digest_of(table)
    assert table["a"] is not None
    if name == "pandas":
        assert table.loc[5, "a"] == 1
        assert table.index.is_unique
        assert len(table.groupby("b")) == 2
        assert table.T is not None
    assert digest_of(table) == before == digest_of(FRAMES[name]())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1]}, index=[7])),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1.0]})),
        (pd.Series(["x"]), pd.Series(["y"])),
        (pd.Series(["x"], dtype="category"), pd.Series(["x"])),
        (pd.array([1, None], dtype="Int64"), pd.array([1, 0], dtype="Int64")),
        (pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [2]})),
        (pl.DataFrame({"a": [1]}), pl.DataFrame({"b": [1]})),
        (pa.table({"a": [1]}), pa.table({"a": [None]})),
        (np.arange(3), np.arange(3).astype("f8")),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.float32(1), np.float64(1)),
        (bytearray(b"a"), b"a"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1] * 100, [True] * 100),
        (["a"] * 100, ("a",) * 100),
        ([{"a": 1}] * 100, [{"a": 2}] * 100),
        ([[1, 2], [3]] * 100, [[1], [2, 3]] * 100),
    ],
)
def test_tables_and_arrays_that_differ_have_other_fingerprints(one: Any, other: Any) -> None:
    assert digest_of(one) != digest_of(other)


def test_neither_chunks_nor_slices_nor_the_layout_of_memory_count() -> None:
    whole = pa.chunked_array([[1, 2, 3, 4]])
    assert digest_of(whole) == digest_of(pa.chunked_array([[1], [2, 3, 4]]))
    assert digest_of(whole) == digest_of(pa.chunked_array([[0, 1, 2, 3, 4]]).slice(1))
    grid = np.arange(12).reshape(3, 4)
    assert digest_of(grid) == digest_of(np.asfortranarray(grid))
    assert digest_of(grid[:, 1]) == digest_of(grid[:, 1].copy())
    by_column = {name: pd.Series(grid[:, n]) for n, name in enumerate("abcd")}
    assert digest_of(pd.DataFrame(grid, columns=[*"abcd"])) == digest_of(pd.DataFrame(by_column))


@given(st.recursive(st.integers() | st.text() | st.floats() | st.none(), st.lists, max_leaves=99))
def test_which_values_are_one_object_does_not_count(value: Any) -> None:
    twin = json.loads(json.dumps(value))
    assert digest_of([value, value]) == digest_of([value, twin]) == digest_of([twin, twin])


@given(st.sets(st.text()) | st.frozensets(st.tuples(st.integers(), st.text())))
def test_the_order_of_a_set_does_not_count(value: Any) -> None:
    again = type(value)(sorted(value, reverse=True))
    assert digest_of(value) == digest_of(again)
    assert digest_of(value) != digest_of(sorted(value))


@pytest.mark.parametrize("make", [lambda n: bytes(n), lambda n: np.zeros(n // 8)], ids=["b", "np"])
def test_large_values_are_hashed_in_place(make: Callable[[int], Any]) -> None:
    value = make(300_000_000)
    tracemalloc.start()
    try:
        started = time.process_time()
        digest_of(value)
        assert time.process_time() - started < 2  # 0.2 s; the machine may be busy
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_deeply_nested_value_and_one_that_contains_itself_have_fingerprints() -> None:
    def nested(core: int) -> list[Any]:
        value: list[Any] = [core]
        for _ in range(5_000):
            value = [value]
        return value

    circle: list[Any] = [1]
    circle.append(circle)
    assert digest_of(nested(1)) == digest_of(nested(1)) != digest_of(nested(2))
    assert digest_of(circle) == digest_of(circle) != digest_of([1, [1]])


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "numbers = (n for n in range(3))\ndef f(): return next(numbers)",
            "the value of numbers (a generator, in function f of module.py line 2) cannot be "
            "fingerprinted",
        ),
        (
            "def g(x, rest=(n for n in [])): return rest\ndef f(): return g(0)",
            "the value of rest (a generator, in function g of module.py line 1) cannot be "
            "fingerprinted",
        ),
    ],
)
def test_the_reason_why_a_value_has_no_fingerprint_names_the_value(
    source: str, reason: str
) -> None:
    survey = Fingerprints().survey(compiled(source))
    assert survey.digest != Fingerprints().survey(compiled(source)).digest
    assert [reason] == list(survey.reasons)


def test_an_open_file_among_the_variables_of_a_closure_is_named(tmp_path: Path) -> None:
    with open(tmp_path / "x", "w") as file:
        reasons = Fingerprints().survey(lambda: file.write("x")).reasons
    assert len(reasons) == 1
    assert reasons[0].startswith("the value of file (a TextIOWrapper, in function ")


def test_locks_and_values_of_one_thread_say_nothing() -> None:
    assert digest_of(threading.Lock()) == digest_of(threading.Lock())
    assert digest_of(threading.local()) == digest_of(threading.local())


def test_the_imports_of_a_module_that_is_imported_when_the_function_runs_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "first_c.py").write_text("from package_c import second\ndef g(): return second.h()")
    (tmp_path / "package_c").mkdir()
    (tmp_path / "package_c" / "__init__.py").write_text("")
    (tmp_path / "package_c" / "second.py").write_text("from . import third\nh = third.h")
    found = []
    for n in (1, 1, 2):
        (tmp_path / "package_c" / "third.py").write_text(f"def h(): return {n}")
        found.append(digest_of(compiled("def f():\n import first_c\n return first_c.g()")))
    assert found[0] == found[1] != found[2]
    assert "first_c" not in sys.modules


def test_what_a_pandas_index_or_table_is_besides_its_values_counts() -> None:
    days = pd.date_range("2024", periods=3, freq="D")
    frame = pd.DataFrame({"a": [1, 2, 3]})
    noted = frame.copy()
    noted.attrs["unit"] = "m"
    different = [days, pd.DatetimeIndex(list(days)), days.rename("day")]
    different += [pd.timedelta_range("1h", periods=3), pd.TimedeltaIndex(["1h", "1D 1h", "2D 1h"])]
    different += [frame, noted, frame.rename_axis("n"), frame.rename_axis("n", axis=1)]
    different += [frame.set_flags(allows_duplicate_labels=False)]
    different += [frame["a"], noted["a"], frame["a"].set_flags(allows_duplicate_labels=False)]
    assert len({digest_of(each) for each in different}) == len(different)
    before = digest_of(days)
    assert (days.freqstr, days.is_unique, days.shift(1)[0].day) == ("D", True, 2)
    assert digest_of(days) == before


def test_a_class_means_the_same_after_its_objects_were_pickled() -> None:
    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

    before = digest_of(Point)
    cloudpickle.loads(cloudpickle.dumps(Point(1)))
    assert digest_of(Point) == before
