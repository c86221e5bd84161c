"""Equal keys have equal partition ids, everywhere; bad keys are refused with the edge's name."""

from __future__ import annotations

import datetime
import enum
import os
import subprocess
import sys
import uuid
import zoneinfo
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.partitioning import (
    PARTITION_COUNT,
    InvalidKey,
    canonical_bytes,
    partition_function,
    partition_id,
)

Point = namedtuple("Point", "x y")


@dataclass(frozen=True)
class City:
    name: str
    size: int


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


SET_BACK = datetime.datetime(2026, 10, 25, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
NOON_UTC = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)

EQUAL_KEYS: list[tuple[Any, ...]] = [
    (1, 1.0, True, Decimal(1), Fraction(1), 1 + 0j, Level.LOW),
    (0, False, 0.0, -0.0),
    (2**80, float(2**80)),
    ((1, "a"), (1.0, "a"), (True, "a")),
    (Point(1, 2), (1, 2), (1.0, 2.0)),
    (b"ab", bytearray(b"ab")),
    (frozenset([1, 2, "a"]), {"a", 2.0, True}),
    (NOON_UTC, NOON_UTC.astimezone(datetime.timezone(datetime.timedelta(hours=5)))),
    (City("a", 1), City("a", True)),
    ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}),
    (SET_BACK, SET_BACK.replace(fold=1)),
    (SET_BACK.timetz(), SET_BACK.timetz().replace(fold=1)),
    (numpy.longdouble(1.5), 1.5, numpy.float64(1.5), numpy.float16(1.5)),
    (numpy.clongdouble(1), 1),
    ((numpy.longdouble(2), numpy.bool_(True), -1), (2, 1.0, -1.0)),
]


@pytest.mark.parametrize("keys", EQUAL_KEYS, ids=lambda keys: repr(keys[0]))
def test_keys_that_are_equal_have_one_partition(keys: tuple[Any, ...]) -> None:
    assert all(key == keys[0] for key in keys)
    assert len({canonical_bytes(key) for key in keys}) == 1


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False),
)
keys = st.recursive(
    scalars,
    lambda inner: st.tuples(inner, inner) | st.frozensets(scalars, max_size=3),
    max_leaves=6,
)


@given(keys, keys)
def test_equal_keys_are_equal_bytes(a: Any, b: Any) -> None:
    if a == b:
        assert canonical_bytes(a) == canonical_bytes(b)


@given(keys.filter(lambda key: key is not None), st.integers(1, 1000))
def test_a_partition_id_is_in_range(key: Any, count: int) -> None:
    assert 0 <= partition_id(key, count) < count


def test_keys_of_different_kinds_do_not_collide_by_construction() -> None:
    different = [
        "1",
        b"1",
        1,
        ("1",),
        ["1"],
        ("a", "bc"),
        ("ab", "c"),
        (),
        "",
        b"",
        Color.RED,
        datetime.date(2026, 1, 1),
        ("a", None),
    ]
    assert len({canonical_bytes(key) for key in different}) == len(different)


def test_partition_ids_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "import uuid, datetime; from pyrite.partitioning import partition_id as p;"
        "print([p(k) for k in ['a', 'whale', b'x', 1, 2.5, ('a', 1), frozenset('abc'), "
        "uuid.UUID(int=7), datetime.date(2026, 1, 1)]])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(outputs) == 1


def test_the_default_partitioner_is_murmur3_over_271_partitions() -> None:
    import mmh3

    assert PARTITION_COUNT == 271
    assert partition_id("whale") == mmh3.hash(b"whale", signed=False) % 271


def test_keys_spread_over_the_partitions() -> None:
    assert len({partition_id(f"key {n}") for n in range(5000)}) == PARTITION_COUNT


def test_nan_always_has_the_same_partition() -> None:
    assert len({partition_id(float("nan")) for _ in range(10)}) == 1


def test_a_none_key_is_refused_with_the_edge() -> None:
    with pytest.raises(InvalidKey, match="edge 'a -> b' is None"):
        partition_function(271, edge="'a -> b'")(None)
    with pytest.raises(InvalidKey, match="edge 'a -> b' is None"):
        partition_function(271, partitioner=lambda key, count: 0, edge="'a -> b'")(None)


@pytest.mark.parametrize("answer", [-1, 271, None, "3", 1.0])
def test_a_partitioner_that_answers_out_of_range_is_refused(answer: Any) -> None:
    with pytest.raises(
        InvalidKey,
        match=r"partitioner <function .* of edge 'a -> b' must be a whole number from 0 to 270",
    ):
        partition_function(271, partitioner=lambda key, count: answer, edge="'a -> b'")("x")


def test_a_key_without_canonical_bytes_is_refused_with_the_way_out() -> None:
    class Thing:
        pass

    with pytest.raises(
        InvalidKey, match=r"edge 'a -> b'.*Thing.* cannot be a partition key.*key function"
    ):
        partition_function(271, edge="'a -> b'")(Thing())


def test_the_partition_function_forgets_old_keys_and_takes_unhashable_ones() -> None:
    partition = partition_function(271, edge="'a -> b'")
    for n in range(70_000):
        partition(n)
    assert partition(5) == partition_id(5)
    assert partition(["a", {"b": 1}]) == partition_id(["a", {"b": 1}])


def test_an_array_is_refused_as_a_key() -> None:
    with pytest.raises(InvalidKey, match=r"edge 'a -> b'.*ndarray.* cannot be a partition key"):
        partition_function(271, edge="'a -> b'")(numpy.array([1, 2]))
    with pytest.raises(InvalidKey, match=r"ndarray.* cannot be a partition key"):
        partition_id(("a", numpy.array(1)))


def test_uuids_and_enums_have_partitions() -> None:
    assert partition_id(uuid.UUID(int=5)) == partition_id(uuid.UUID(int=5))
    assert partition_id(Color.RED) == partition_id(Color.RED)


class Mask(enum.Flag):
    ONE = 1


class Folded(str):
    """Equal whatever the case: only it knows that."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    __hash__ = str.__hash__


@dataclass
class Loose:
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loose)


def test_paths_are_equal_whatever_their_class_and_windows_paths_whatever_their_case() -> None:
    import pathlib

    assert canonical_bytes(pathlib.PurePosixPath("a")) == canonical_bytes(pathlib.PosixPath("a"))
    assert canonical_bytes(pathlib.PureWindowsPath("A/b")) == canonical_bytes(
        pathlib.PureWindowsPath("a/B")
    )


def test_a_type_with_an_equality_of_its_own_is_refused() -> None:
    import collections

    for key in (Folded("a"), Loose("a"), collections.Counter(a=1, b=0), (Folded("a"),)):
        with pytest.raises(InvalidKey, match="only its own == knows which of them are equal"):
            partition_id(key)


def test_an_empty_flag_and_the_first_moment_of_all_have_partitions() -> None:
    east = datetime.timezone(datetime.timedelta(hours=9))
    assert partition_id(Mask(0)) != partition_id(Mask.ONE)
    assert 0 <= partition_id(datetime.datetime.min.replace(tzinfo=east)) < PARTITION_COUNT


def test_a_partitioner_may_answer_with_any_whole_number() -> None:
    import numpy

    def three(key: Any, count: int) -> Any:
        return numpy.int64(3)

    assert partition_function(271, partitioner=three, edge="'a -> b'")("x") == 3
