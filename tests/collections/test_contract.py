"""What holds for named maps and lists of all kinds."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrite.collections import MemoryCollections
from tests.collections.conftest import Kind
from tests.collections.points import Color, Pair, Point

keys = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, True, None, math.inf, math.nan, 2**61, 2**61 - 1]),
    st.text(max_size=1),
    st.tuples(st.integers(-2, 1) | st.just("a") | st.just(math.nan)),
)
map_steps = st.one_of(
    st.tuples(st.just("__setitem__"), st.tuples(keys, st.integers())),
    st.tuples(st.sampled_from(["__getitem__", "__delitem__", "pop"]), st.tuples(keys)),
    st.tuples(st.sampled_from(["get", "setdefault", "pop"]), st.tuples(keys, st.integers())),
    st.tuples(st.just("update"), st.tuples(st.dictionaries(keys, st.integers(), max_size=3))),
    st.tuples(st.just("__contains__"), st.tuples(keys)),
    st.tuples(st.sampled_from(["__len__", "clear", "copy"]), st.just(())),
)
indexes = st.one_of(st.integers(-5, 5), st.slices(4))
small = st.integers(0, 3)
list_steps = st.one_of(
    st.tuples(st.sampled_from(["append", "remove", "index", "count"]), st.tuples(small)),
    st.tuples(st.just("__contains__"), st.tuples(small)),
    st.tuples(st.just("index"), st.tuples(small, st.integers(-3, 3))),
    st.tuples(st.just("extend"), st.tuples(st.lists(small, max_size=3))),
    st.tuples(st.sampled_from(["__getitem__", "__delitem__"]), st.tuples(indexes)),
    st.tuples(st.just("__setitem__"), st.tuples(st.integers(-5, 5), small)),
    st.tuples(st.just("__setitem__"), st.tuples(st.slices(4), st.lists(small, max_size=3))),
    st.tuples(st.just("insert"), st.tuples(st.integers(-5, 5), small)),
    st.tuples(st.just("pop"), st.one_of(st.just(()), st.tuples(st.integers(-5, 5)))),
    st.tuples(st.sampled_from(["__len__", "reverse", "clear", "copy"]), st.just(())),
)
over_all_examples = settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def outcome(target: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    try:
        return getattr(target, method)(*arguments)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        return type(error)


@given(steps=st.lists(map_steps, max_size=10))
@over_all_examples
def test_a_map_does_what_a_map_in_memory_does(collections: Kind, steps: Any) -> None:
    ours, reference = collections.map("m"), MemoryCollections().map("m")
    ours.clear()
    for method, arguments in steps:
        expected = outcome(reference, method, arguments)
        found = outcome(ours, method, arguments)
        if isinstance(expected, dict):
            assert len(found) == len(expected)
        else:
            assert found == expected
    for key, value in reference.items():
        assert ours[key] == value
    assert len(ours) == len(reference)


@given(steps=st.lists(list_steps, max_size=10))
@over_all_examples
def test_a_list_does_what_a_list_in_memory_does(collections: Kind, steps: Any) -> None:
    ours, reference = collections.list("l"), MemoryCollections().list("l")
    ours.clear()
    for method, arguments in steps:
        assert outcome(ours, method, arguments) == outcome(reference, method, arguments)
    assert ours == reference.copy()


EQUAL: list[list[Any]] = [
    [1, 1.0, True, Decimal("1.0"), Fraction(1), 1 + 0j, Color.RED],
    [0.5, Decimal("0.50"), Fraction(1, 2)],
    [float("nan"), -float("nan"), Decimal("nan"), complex("nan")],
    [math.inf, Decimal("inf")],
    [(1, "a"), (1.0, "a"), Pair(True, "a")],
    [frozenset([1, 2]), frozenset([2.0, True, 1])],
    [Point(1, "a"), Point(1.0, "a")],
    [Point(math.nan, "a"), Point(-math.nan, "a")],
    [
        datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC),
        datetime.datetime(2026, 1, 1, 13, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    ],
    ["é", "\xe9"],
    [None],
    [b"a", bytes(bytearray(b"a"))],
]


@pytest.mark.parametrize("equal", EQUAL, ids=lambda equal: repr(equal[0])[:30])
def test_equal_keys_are_one_key(collections: Kind, equal: list[Any]) -> None:
    entries = collections.map("m")
    for number, key in enumerate(equal):
        entries[key] = number
    assert len(entries) == 1
    assert [entries[key] for key in equal] == [len(equal) - 1] * len(equal)


def test_keys_that_differ_are_different_keys(collections: Kind) -> None:
    firsts = [group[0] for group in EQUAL]
    others = [-1, -2, 0, 2**61 - 1, "1", b"1", "nan", "", (), ((),), ("a", "bc"), ("ab", "c")]
    different = [*firsts, *others, ("a\x1fb",), ("a", "b"), datetime.date(2026, 1, 1), "None"]
    collections.map("m").update({key: place for place, key in enumerate(different)})
    assert [collections.map("m")[key] for key in different] == list(range(len(different)))


@pytest.mark.parametrize(
    "use",
    [
        lambda m, key: m.__getitem__(key),
        lambda m, key: m.__setitem__(key, 1),
        lambda m, key: m.__contains__(key),
        lambda m, key: m.setdefault(key, 1),
    ],
)
def test_a_key_that_is_not_hashable_is_a_type_error(
    collections: Kind, use: Callable[[Any, Any], Any]
) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        use(collections.map("m"), [1])
    with pytest.raises(TypeError, match="unhashable"):
        use(collections.map("m"), (1, [1]))


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda c: c.map("m")["none"], KeyError),
        (lambda c: c.map("m").pop("none"), KeyError),
        (lambda c: c.map("m").popitem(), KeyError),
        (lambda c: c.map("m").__delitem__("none"), KeyError),
        (lambda c: c.list("l")[0], IndexError),
        (lambda c: c.list("l").pop(), IndexError),
        (lambda c: c.list("l").__setitem__(0, 1), IndexError),
        (lambda c: c.list("l").__delitem__(-1), IndexError),
        (lambda c: c.list("l").remove(1), ValueError),
        (lambda c: c.list("l").index(1), ValueError),
        (lambda c: c.list("l")["a"], TypeError),
        (lambda c: c.list("l").insert("a", 1), TypeError),
        (lambda c: c.list("l").__setitem__(slice(0, 1), 5), TypeError),
    ],
)
def test_what_is_not_there_raises_as_in_python(
    collections: Kind, use: Callable[[Any], Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        use(collections)


VALUES = [None, "", b"\0", 1.5, [1, {"a": (2,)}], Point(1, "x"), Color.RED, {1, 2}, range(3)]


def test_values_of_any_type_come_back(collections: Kind) -> None:
    collections.list("l").extend(VALUES)
    collections.map("m").update(enumerate(VALUES))
    assert list(collections.list("l")) == VALUES
    assert collections.map("m") == dict(enumerate(VALUES))


def test_popitem_gives_each_entry_once(collections: Kind) -> None:
    entries = collections.map("m")
    entries.update({n: str(n) for n in range(20)})
    taken = dict(entries.popitem() for _ in range(20))
    assert taken == {n: str(n) for n in range(20)}
    assert len(entries) == 0


def test_each_call_is_one_step(collections: Kind) -> None:
    numbers, entries = collections.list("l"), collections.map("m")

    def work(worker: int) -> int:
        for _ in range(20):
            numbers.extend([worker] * 3)
            numbers.insert(0, worker)
            numbers.remove(worker)
            numbers.reverse()
            entries.setdefault("first", worker)
        return int(entries["first"])

    with ThreadPoolExecutor(4) as pool:
        firsts = set(pool.map(work, range(4)))
    assert len(firsts) == 1
    assert sorted(numbers) == sorted([0, 1, 2, 3] * 60)


def test_the_same_name_is_the_same_collection_and_kinds_are_apart(collections: Kind) -> None:
    collections.map("m")["l"] = 1
    collections.list("m").append(2)
    assert collections.map("m") == {"l": 1}
    assert collections.list("m") == [2]
    collections.list("m").clear()


def test_a_list_equals_lists_of_all_kinds(collections: Kind) -> None:
    other = MemoryCollections().list("other")
    other.extend([1, 2])
    collections.list("l").extend([1, 2])
    assert collections.list("l") == other
    assert collections.list("l") == [1, 2]
    assert collections.list("l") != [1]


def test_repr_shows_the_name_and_the_contents(collections: Kind) -> None:
    collections.map("m")[1] = "a"
    collections.list("l").append(1)
    assert repr(collections.map("m")) == "Map('m', {1: 'a'})"
    assert repr(collections.list("l")) == "List('l', [1])"


def test_what_is_stored_is_listed(collections: Kind) -> None:
    collections.map("m").update({1: "a"})
    collections.list("l").extend([1, 2])
    listed = (
        collections.contents() if hasattr(collections, "contents") else collections.collections()
    )
    assert sorted(listed) == [("list", "l", [1, 2]), ("map", "m", [(1, "a")])]
