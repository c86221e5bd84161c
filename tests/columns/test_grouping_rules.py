"""The rules of groupings, one by one: types, sums, errors, saved states and memory."""

from __future__ import annotations

import os
import re
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from pyrite.columns.grouping import grouping as module
from pyrite.columns.grouping.aggregates import FUNCTIONS, group_spec
from pyrite.columns.grouping.grouping import Grouping
from pyrite.columns.grouping.spilling import Spill
from pyrite.columns.kernels import KERNELS, Kernels
from pyrite.columns.schemas import InvalidBatch
from pyrite.errors import InvalidDAG
from tests.columns.groupings import groups, in_two_steps, results

MOST = 2**63 - 1


@pytest.fixture(params=KERNELS)
def kernels(request: pytest.FixtureRequest) -> Kernels:
    found: Kernels = request.param
    return found


def sums(*columns: list[Any], kind: pa.DataType | None = None, **options: Any) -> list[Any]:
    """The sums of groups of one key, each batch with some of its values."""
    batches = [
        pa.record_batch({"k": [1] * len(values), "x": pa.array(values, kind)}) for values in columns
    ]
    found: list[Any] = groups(batches, ["k"], {"x": ("x", "sum")}, **options)["x"].to_pylist()
    return found


def test_columns_are_the_key_then_the_aggregates_in_their_order(kernels: Kernels) -> None:
    batch = pa.record_batch({"x": [1, 2], "b": ["u", "u"], "a": [1, 1]})
    aggregates = {"z": ("x", "sum"), "m": ("x", "mean"), "n": ("b", "count")}
    found = groups([batch], ["b", "a"], aggregates, kernels=kernels)
    assert found.to_pylist() == [{"b": "u", "a": 1, "z": 3, "m": 1.5, "n": 2}]
    assert found.column_names == ["b", "a", "z", "m", "n"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint32(), pa.uint64(), pa.bool_(), pa.int64()])
def test_a_sum_of_whole_numbers_is_an_int64(kind: pa.DataType, kernels: Kernels) -> None:
    batch = pa.record_batch({"k": [1, 1], "x": pa.array([1, 1]).cast(kind)})
    found = groups([batch], ["k"], {"x": ("x", "sum")}, kernels=kernels)
    assert (found["x"].type, found["x"].to_pylist()) == (pa.int64(), [2])


def test_an_int64_that_overflows_is_an_error(kernels: Kernels) -> None:
    message = (
        "vertex 'sum': the sum of column 'x' is 9223372036854775808 for the group k = 1, which"
    )
    with pytest.raises(InvalidBatch, match=message):
        sums([MOST, 1], kernels=kernels)


@pytest.mark.parametrize("budget", [None, 1])
def test_only_the_whole_sum_can_overflow(kernels: Kernels, budget: int | None) -> None:
    assert sums([MOST, MOST], [-MOST, -1], kernels=kernels, budget=budget) == [MOST - 1]
    assert sums([2**64 - 1] * 0, [MOST, 0], kind=pa.uint64(), kernels=kernels) == [MOST]


def test_only_the_whole_sum_of_states_can_overflow(kernels: Kernels) -> None:
    batches = [pa.record_batch({"k": [1, 1], "x": values}) for values in ([MOST, 5], [-9, -9])]
    spec = group_spec(["k"], {"x": ("x", "sum")}, where="")
    found = in_two_steps(batches, spec.by, spec.aggregates, kernels=kernels)
    assert found["x"].to_pylist() == [MOST - 13]


def test_sums_of_decimals_have_the_most_digits(kernels: Kernels) -> None:
    kind = pa.decimal128(4, 2)
    assert sums([Decimal("99.99")] * 200, kind=kind, kernels=kernels) == [Decimal("19998.00")]


def test_a_decimal_that_overflows_is_an_error(kernels: Kernels) -> None:
    with pytest.raises(InvalidBatch, match="column 'x' has too many digits for a decimal"):
        sums([Decimal("9" * 38)] * 2, kind=pa.decimal128(38, 0), kernels=kernels)


def test_large_decimals_that_cancel_out_are_added(kernels: Kernels) -> None:
    most = Decimal("9" * 38)
    assert sums([most, most, most.copy_negate()], kind=pa.decimal128(38, 0), kernels=kernels) == [
        most
    ]


def test_the_sum_of_no_values_is_null(kernels: Kernels) -> None:
    batch = pa.record_batch({"k": [1, 2], "x": [None, 1.5]})
    found = groups([batch], ["k"], {"s": ("x", "sum"), "n": ("x", "count")}, kernels=kernels)
    assert found.to_pylist() == [{"k": 1, "s": None, "n": 0}, {"k": 2, "s": 1.5, "n": 1}]


def test_null_is_one_group_and_so_is_nan(kernels: Kernels) -> None:
    nan = float("nan")
    batch = pa.record_batch({"k": [None, nan, 0.0, None, -nan, -0.0], "x": [1] * 6})
    found = groups([batch], ["k"], {"n": ("x", "count")}, kernels=kernels)
    assert found["n"].to_pylist() == [2, 2, 2]


def test_first_is_the_first_that_is_not_null_of_any_type(kernels: Kernels) -> None:
    values = [None, {"a": ["x"]}, {"a": ["y"]}]
    batches = [pa.record_batch({"k": [1], "x": pa.array([value])}) for value in values]
    found = groups(batches, ["k"], {"x": ("x", "first")}, kernels=kernels)
    assert found["x"].to_pylist() == [{"a": ["x"]}]


def test_dictionaries_may_differ(kernels: Kernels) -> None:
    batches = [
        pa.record_batch({"k": pa.array(values).dictionary_encode(), "x": [1, 2]})
        for values in (["a", "b"], ["b", "c"])
    ]
    found = groups(batches, ["k"], {"x": ("x", "sum")}, kernels=kernels)
    assert found.to_pydict() == {"k": ["a", "b", "c"], "x": [1, 3, 2]}
    assert found["k"].type == pa.string()


def test_columns_of_nulls_have_the_type_that_others_have(kernels: Kernels) -> None:
    aggregates = {f: ("x", f) for f in FUNCTIONS if f not in ("sum", "mean")}
    nulls = pa.record_batch({"k": [1], "x": pa.nulls(1)})
    batch = pa.record_batch({"k": [1], "x": ["a"]})
    expected = {"min": "a", "max": "a", "count": 1, "count_distinct": 1, "first": "a"}
    for batches in ([nulls, batch], [batch, nulls]):
        for budget in (None, 1):
            found = groups(batches, ["k"], aggregates, kernels=kernels, budget=budget)
            assert found.to_pylist() == [{"k": 1, **expected}]


# No rows.


def test_no_rows_give_no_groups_but_their_types(kernels: Kernels) -> None:
    batch = pa.record_batch({"k": ["a"], "x": [1]}).slice(1)
    found = groups([batch], ["k"], {"x": ("x", "sum")}, kernels=kernels)
    assert found.schema == pa.schema([("k", pa.string()), ("x", pa.int64())])
    assert found.num_rows == 0


def test_no_batches_give_nothing(kernels: Kernels) -> None:
    assert results([], group_spec(["k"], {}, where=""), kernels=kernels) == []


def test_without_columns_all_rows_are_one_group(kernels: Kernels) -> None:
    aggregates = {"x": ("x", "sum"), "n": ("x", "count"), "d": ("x", "count_distinct")}
    batch = pa.record_batch({"x": [1, 1]})
    for frames in ([batch, batch], [pl.DataFrame({"x": [1, 1]})] * 2):
        found = groups(frames, [], aggregates, kernels=kernels)
        assert found.to_pylist() == [{"x": 4, "n": 4, "d": 1}]


def test_without_columns_there_is_a_group_of_no_rows_if_a_batch_has_come(kernels: Kernels) -> None:
    aggregates = {"x": ("x", "sum"), "n": ("x", "count"), "d": ("x", "count_distinct")}
    spec = group_spec([], aggregates, where="")
    empty = pa.record_batch({"x": [1]}).slice(1)
    found = in_two_steps([empty, empty], spec.by, spec.aggregates, kernels=kernels)
    assert found.to_pylist() == [{"x": None, "n": 0, "d": 0}]
    assert results([], spec, kernels=kernels) == []


def test_without_aggregates_the_distinct_keys_are_given(kernels: Kernels) -> None:
    batch = pa.record_batch({"k": ["b", "a", "b"]})
    assert groups([batch], ["k"], {}, kernels=kernels).to_pydict() == {"k": ["b", "a"]}


# Columns that do not fit.


def error_of(*frames: Any, by: str = "k", aggregate: tuple[str, str] = ("x", "sum")) -> str:
    with pytest.raises(InvalidBatch) as caught:
        groups(frames, [by], {"total": aggregate})
    return str(caught.value)


BATCH = pa.record_batch({"k": [1], "x": [1], "s": ["a"], "l": [[1]]})


def test_a_missing_column_is_named() -> None:
    assert error_of(BATCH, by="K").startswith("vertex 'sum': there is no column 'K'")
    assert error_of(BATCH, aggregate=("y", "sum")).startswith(
        "vertex 'sum': there is no column 'y'"
    )


def test_types_that_differ_between_batches_are_named() -> None:
    text = error_of(BATCH, pa.record_batch({"k": [1], "x": [1.5]}))
    assert re.match(
        "vertex 'sum': the column 'x' is double in one batch and int64 in another", text
    )


def test_a_type_that_cannot_be_added_is_named() -> None:
    assert error_of(BATCH, aggregate=("s", "sum")) == (
        "vertex 'sum': aggregate 'total' is the sum of column 's', which is string; sum takes "
        "numbers and bools. Convert the column before, for example with map_batches"
    )


def test_a_type_that_has_no_order_is_named() -> None:
    assert "column 'l', which is list<item: int64>; min" in error_of(BATCH, aggregate=("l", "min"))
    assert "column 'l' is list<item: int64>, which cannot be the key" in error_of(BATCH, by="l")


def test_rows_in_place_of_states_are_an_error() -> None:
    spec = group_spec(["k"], {"x": ("x", "sum")}, takes="states", where="")
    with pytest.raises(InvalidBatch, match=r"final=True takes the states .* no column 'x:sum'"):
        results([BATCH], spec)


@pytest.mark.parametrize(
    ("by", "aggregates", "message"),
    [
        ("k", {}, "must be a list of column names; got 'k'; write by=['k']"),
        ([1], {}, "as strings; it contains 1"),
        (["k", "k"], {}, "names column 'k' twice"),
        ([], {}, "neither columns in by nor aggregates"),
        (["k"], [("x", "sum")], "must be a dict such as {'total': ('price', 'sum')}"),
        (["k"], {"k": ("x", "sum")}, "make a column 'k', which is also a column of by"),
        (["k"], {"": ("x", "sum")}, "non-empty strings; got ''"),
        (["k"], {"a": "sum"}, "'a' of f() must be a pair (column, function)"),
        (["k"], {"a": ("x", "summ")}, "unknown function 'summ'; the functions are sum, mean,"),
    ],
)
def test_wrong_arguments_are_explained(by: Any, aggregates: Any, message: str) -> None:
    with pytest.raises(InvalidDAG, match=re.escape(message)):
        group_spec(by, aggregates, where="f()")


# States, and memory.


def rows(seed: int, count: int, keys: int) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    return pa.record_batch(
        {
            "k": random.integers(0, keys, count),
            "x": random.random(count),
            "s": ["a", "b"] * (count // 2),
        }
    )


AGGREGATES = {
    f"{f} of {c}": (c, f) for c in "kxs" for f in FUNCTIONS if c != "s" or f[1] not in "ue"
}


def sorted_groups(table: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.sort_by("k").to_pylist()
    return [
        {name: round(x, 9) if isinstance(x, float) else x for name, x in row.items()}
        for row in found
    ]


def test_a_grouping_goes_on_from_what_it_saved(kernels: Kernels) -> None:
    spec = group_spec(["k"], AGGREGATES, where="")
    one, other = rows(1, 200, 20), rows(2, 200, 30)
    for budget in (None, 1000):
        first = Grouping(spec, kernels=kernels, budget=budget, vertex="sum")
        first.add(one)
        saved = [*first.save()]
        assert [*first.save()] == saved
        second = Grouping(spec, kernels=kernels, budget=budget, vertex="sum")
        for key, batch in saved:
            second.restore(key, batch)
        for grouping in (first, second):
            grouping.add(other)
            found = pa.Table.from_batches(grouping.results())
            grouping.close()
            assert sorted_groups(found) == sorted_groups(groups([one, other], ["k"], AGGREGATES))


def test_what_was_saved_may_be_restored_in_any_order(kernels: Kernels) -> None:
    spec = group_spec(["k"], {"v": ("v", "first")}, where="")
    first = Grouping(spec, kernels=kernels, budget=1, vertex="sum")
    for number in range(3):
        first.add(pa.record_batch({"k": [1, 2], "v": [number, number]}))
        saved = [*first.save()]  # and what waits goes to disk
    first.close()
    second = Grouping(spec, kernels=kernels, budget=1, vertex="sum")
    for key, batch in reversed(saved):
        second.restore(key, batch)
    found = pa.Table.from_batches(second.results())
    second.close()
    assert sorted_groups(found) == [{"k": 1, "v": 0}, {"k": 2, "v": 0}]


def test_states_that_do_not_fit_into_memory_are_spilled(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = []

    class Watched(Spill):
        def __init__(self, by: Any, level: int) -> None:
            levels.append(level)
            super().__init__(by, level)

    monkeypatch.setattr(module, "Spill", Watched)
    batches = [rows(seed, 400, 300) for seed in range(2)]
    found = groups(batches, ["k"], AGGREGATES, kernels=kernels, budget=4_000)
    assert {0, 1} <= {*levels}
    assert sorted_groups(found) == sorted_groups(groups(batches, ["k"], AGGREGATES))


def test_one_group_that_is_larger_than_memory_is_not_spilled_again_and_again(
    kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "Spill", None)
    batch = pa.record_batch({"k": [1] * 1000, "x": range(1000)})
    found = groups([batch, batch], ["k"], {"n": ("x", "count_distinct")}, kernels=kernels, budget=9)
    assert found["n"].to_pylist() == [1000]


def test_files_are_closed_with_the_grouping(kernels: Kernels) -> None:
    before = os.listdir("/proc/self/fd")
    grouping = Grouping(group_spec(["k"], {}, where=""), kernels=kernels, budget=9, vertex="sum")
    grouping.add(rows(1, 100, 50))
    assert len(os.listdir("/proc/self/fd")) > len(before)
    next(grouping.results())
    grouping.close()
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.parametrize("keys", ["random", "sorted"])
def test_equal_frames_give_equal_rows_in_order(kernels: Kernels, keys: str) -> None:
    batches = [rows(seed, 40_000, 5000) for seed in range(3)]
    if keys == "sorted":
        batches = [batch.sort_by("k") for batch in batches]
    aggregates = {"x": ("x", "sum"), "m": ("x", "mean")}
    found = [groups(batches, ["k"], aggregates, kernels=kernels) for _ in range(3)]
    assert found[0] == found[1] == found[2]
    keys_in_order = dict.fromkeys(key for batch in batches for key in batch["k"].to_pylist())
    assert found[0]["k"].to_pylist() == [*keys_in_order]


def test_results_come_in_batches_of_a_few_megabytes(kernels: Kernels) -> None:
    batch = pa.record_batch({"k": np.arange(1_200_000)})
    found = results([batch], group_spec(["k"], {}, where=""), kernels=kernels)
    assert max(each.nbytes for each in found) <= 8 << 20
    assert sum(each.num_rows for each in found) == 1_200_000
