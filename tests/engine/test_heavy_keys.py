"""The sketch of the heaviest keys of an edge."""

from __future__ import annotations

import itertools
import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.engine.heavy_keys import CAPACITY, EXACT, SAMPLES, HeavyKeys, is_repeatable, pruned
from pyrite.engine.metrics import text_of_key

KEYS = st.lists(st.integers(0, 30), max_size=EXACT)


def seen(keys: Iterable[object], at_once: int = 1000) -> HeavyKeys:
    heavy, items = HeavyKeys(), list(keys)
    for start in range(0, len(items), at_once):
        chunk = items[start : start + at_once]
        heavy.see(chunk, len(chunk))
    return heavy


@given(st.lists(KEYS, max_size=8), st.integers(1, 10))
def test_a_pruned_count_is_too_small_by_little(chunks: list[list[int]], capacity: int) -> None:
    kept: dict[int, int] = {}
    for chunk in chunks:
        kept = pruned(Counter(kept) + Counter(chunk), capacity)
    exact = Counter(key for chunk in chunks for key in chunk)
    assert len(kept) <= capacity
    for key, count in exact.items():
        assert count - exact.total() / (capacity + 1) <= kept.get(key, 0) <= count


@given(KEYS)
def test_few_items_are_counted_exactly(keys: list[int]) -> None:
    assert sorted(seen(keys).heaviest(100)) == sorted(Counter(keys).items())


@given(st.lists(st.integers(0, 5), max_size=3000), st.integers(1, 700))
def test_it_does_not_matter_how_many_items_come_at_once(keys: list[int], at_once: int) -> None:
    assert seen(keys, at_once).heaviest(9) == seen(keys).heaviest(9)


@pytest.mark.parametrize("period", [2, 8, 64, 1000])
def test_a_regular_pattern_does_not_deceive_it(period: int) -> None:
    """One of `period` items has the key 0. The others have the key 1 or 2."""
    keys = [0 if n % period == 0 else 1 + n % 3 % 2 for n in range(200_000)]
    shares = {key: count / len(keys) for key, count in seen(keys).heaviest(5)}
    assert abs(shares.get(0, 0) - 1 / period) < 0.05


def test_a_heavy_key_among_many_is_found() -> None:
    keys = ["heavy" if n % 10 < 3 else f"key {n}" for n in range(500_000)]
    ((key, count),) = seen(keys).heaviest(5)
    assert key == "heavy"
    assert abs(count / len(keys) - 0.3) < 0.06


def test_keys_that_are_all_different_are_not_heavy() -> None:
    assert seen(range(1_000_000)).heaviest(5) == []


def test_it_looks_at_few_of_many_items() -> None:
    looked_at: list[int] = []
    heavy = HeavyKeys(looked_at.append)
    for _ in range(1000):
        heavy.see(range(1000), 1000)
    assert len(looked_at) < 14 * SAMPLES


def test_rows_of_batches_and_rows_that_are_dicts_have_the_same_keys() -> None:
    batch = pa.record_batch({"shop": ["a", "b", "a"], "n": [1, 2, 3]})
    of_rows, of_dicts = HeavyKeys(columns=["shop"]), HeavyKeys(columns=["shop"])
    of_rows.see([batch, batch], 6)
    of_dicts.see([*batch.to_pylist(), *batch.to_pylist()], 6)
    assert of_rows.heaviest(5) == of_dicts.heaviest(5) == [("a", 4), ("b", 2)]


def test_keys_that_are_not_hashable_and_nans_are_counted() -> None:
    heavy = seen([[1], [1], float("nan"), float("nan"), float("nan")])
    assert [(repr(key), count) for key, count in heavy.heaviest(5)] == [("nan", 3), ("[1]", 2)]


def test_a_key_function_that_raises_on_a_second_call_does_no_harm() -> None:
    heavy = HeavyKeys(lambda item: 1 // item)
    heavy.see([1, 0, 1], 3)
    assert heavy.heaviest(5) == [(1, 2)]


def test_of_a_thousand_items_few_are_looked_at() -> None:
    looked_at: list[int] = []
    HeavyKeys(looked_at.append).see(range(1000), 1000)
    assert len(looked_at) < 200


@given(st.lists(st.one_of(st.integers(0, 3), st.just(float("nan")), st.lists(st.none()))))
def test_the_first_items_are_counted_the_same_way_at_once_and_one_by_one(keys: list[Any]) -> None:
    at_once, one_by_one = seen(keys).heaviest(9), seen(keys, 1).heaviest(9)
    assert sorted(map(repr, at_once)) == sorted(map(repr, one_by_one))


def test_a_sketch_stays_small() -> None:
    heavy = seen(range(100_000))
    assert len(heavy._weights) <= 2 * CAPACITY


@pytest.mark.parametrize("columns", [None, ["a"]])
def test_an_edge_may_carry_batches_and_other_items(columns: list[str] | None) -> None:
    heavy = HeavyKeys(lambda item: 0, columns)
    heavy.see([pa.record_batch({"a": [7] * 100})], 100)
    for _ in range(40):
        heavy.see([{"a": 7}], 1)
    assert heavy.seen == 140
    assert [key for key, _ in heavy.heaviest(5)] == [7 if columns else 0]


@dataclass(frozen=True)
class Body:
    content: bytes


@pytest.mark.parametrize("key", [bytes, str, Body, lambda content: ("a", content)])
def test_large_keys_are_counted_but_not_kept(key: Callable[[bytes], Any]) -> None:
    contents = [bytes([n % 4]) * 100_000 for n in range(300)]
    items = [key(content[:50_000] + content[:50_000]) for content in contents]
    heavy = seen(items, 10)
    assert len(heavy.heaviest(9)) == 4
    assert len(pickle.dumps(heavy._weights)) < 10_000


class Plain:
    """A key with Python's own repr."""


def test_the_text_of_a_key_has_no_address() -> None:
    assert "Plain object>" in text_of_key(Plain())
    assert text_of_key(("fault at 0x12",)) == "('fault at 0x12',)"
    for name in range(100):
        assert "0x" not in text_of_key(type("x" * name, (), {})())


class Alike:
    """Keys that all have the same hash."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return self.name


def test_keys_with_the_same_hash_are_not_taken_for_each_other() -> None:
    heavy = seen([Alike("a"), Alike("b"), Alike("a")])
    assert [(repr(key), count) for key, count in heavy.heaviest(5)] == [("a", 2), ("b", 1)]


def counting() -> Callable[[object], int]:
    count = 0

    def key(item: object) -> int:
        nonlocal count
        count += 1
        return count

    return key


NUMBERS, TURNS = random.Random(0), itertools.count()
CHANGING: list[Any] = [
    lambda item: NUMBERS.randrange(4),
    lambda item: random.randrange(4),
    lambda item: next(TURNS),
    counting(),
    NUMBERS.sample,
]
SHOPS = {"a": 1}
FIXED: list[Any] = [
    None,
    str,
    len,
    "x".join,
    itemgetter(1),
    lambda item: SHOPS[item],
    lambda item: item.shop,
]


def test_a_key_function_that_changes_is_not_called_again() -> None:
    assert [is_repeatable(key) for key in CHANGING] == [False] * 5
    assert [is_repeatable(key) for key in FIXED] == [True] * 7
