"""Values and functions of many kinds. Run as a program, it prints the fingerprint of each, so that
a test can compare two processes."""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import enum
import fractions
import functools
import json
import logging
import operator
import re
import sys
import threading
import types
import uuid
import zoneinfo
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy import concatenate, sqrt

PATTERN = re.compile(r"(a|b)+", re.IGNORECASE)
LOG = logging.getLogger(__name__)
LOCK = threading.Lock()
LOCAL = threading.local()
WORDS = frozenset(("alpha", "beta", "gamma", "delta"))
FRAME = pd.DataFrame({"word": ["a", "b"], "n": [1, 2]})
ROOT = Path("data")
T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


@dataclass(frozen=True)
class Point:
    x: int
    tags: frozenset[str] = frozenset(("u", "v", "w"))
    more: dict[str, int] = field(default_factory=dict)


class Pair(NamedTuple):
    a: int
    b: str = "b"


class Shape(ABC, Generic[T]):
    @abstractmethod
    def area(self) -> float: ...


class Square(Shape[int]):
    __slots__ = ("side",)
    allowed = {"x", "y", "z"}

    def __init__(self, side: float) -> None:
        self.side = side

    def area(self) -> float:
        return self.side**2

    @functools.cached_property
    def name(self) -> str:
        return "square"


def uses_pattern(text: str) -> bool:
    return PATTERN.match(text) is not None


def uses_ufunc(x: float) -> Any:
    return sqrt(x), np.sqrt(x), concatenate([[x]])


def uses_constants(word: str) -> bool:
    return word in {"one", "two", "three"} or word in WORDS


def uses_logger() -> None:
    with LOCK:
        LOG.info("hello %s %s", LOCAL, sys.stderr)
        print("hello", file=sys.stderr)


def uses_frame() -> int:
    return int(FRAME["n"].sum())


@functools.cache
def cached(x: int) -> int:
    return x + 1


def uses_much(key: Callable[[int], int] = lambda x: -x) -> Any:
    return cached(1), Colour.RED, Access.READ | Access.WRITE, Square(2).area(), Point(1), ROOT, key


def cyclic() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


VALUES: dict[str, Any] = {
    "regex": uses_pattern,
    "ufunc": uses_ufunc,
    "frozenset in code": uses_constants,
    "logger": uses_logger,
    "frame": uses_frame,
    "lru_cache": cached,
    "much": uses_much,
    "set": {"alpha", "beta", "gamma", "delta"},
    "set of tuples": {("alpha", 1), ("beta", 2), ("gamma", frozenset(("x", "y", "z")))},
    "set of enums": {Colour.RED, Colour.BLUE},
    "set of functions": {uses_pattern, uses_ufunc, cached},
    "enum": Colour.RED,
    "flag": Access.READ | Access.WRITE,
    "dataclass": Point(1, more={"a": 1}),
    "namedtuple": Pair(1),
    "class": Square,
    "object": Square(3),
    "bound method": Square(3).area,
    "partial": functools.partial(uses_pattern, "abc"),
    "datetime": datetime.datetime(2024, 1, 2, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
    "timedelta": datetime.timedelta(1),
    "decimal": decimal.Decimal("1.10"),
    "fraction": fractions.Fraction(1, 3),
    "uuid": uuid.UUID(int=7),
    "path": Path("a/b"),
    "counter": collections.Counter("abca"),
    "deque": collections.deque([1, 2], maxlen=3),
    "ordered": collections.OrderedDict(a=1),
    "default": collections.defaultdict(list, a=[1]),
    "namespace": types.SimpleNamespace(a=1),
    "getter": operator.itemgetter(1, "a"),
    "range": range(3),
    "slice": slice(1, 2),
    "cycle": cyclic(),
    "array": array.array("d", [1.0, 2.0]),
    "bytearray": bytearray(b"abc"),
    "numpy": np.arange(6.0).reshape(2, 3),
    "numpy objects": np.array(["a", None, 1], dtype=object),
    "numpy records": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "numpy scalar": np.float32(1.5),
    "numpy time": np.datetime64("2024-01-01"),
    "numpy dtype": np.dtype("int16"),
    "pandas": pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": pd.to_datetime(["2024", "2025"])}),
    "pandas kinds": pd.DataFrame(
        {
            "c": pd.Categorical(["u", "v"]),
            "i": pd.array([1, None], dtype="Int64"),
            "s": pd.array(["x", None], dtype="string"),
            "t": pd.to_datetime(["2024", "2025"]).tz_localize("UTC"),
            "p": pd.period_range("2024", periods=2, freq="Y"),
        },
        index=pd.MultiIndex.from_tuples([(1, "a"), (2, "b")]),
    ),
    "pandas time": pd.Timestamp("2024-01-01", tz="UTC"),
    "polars": pl.DataFrame({"a": [1, 2], "b": ["x", None], "c": [[1], []]}),
    "arrow": pa.table(
        {"a": [1, 2], "b": ["x", None], "d": pa.array(["u", "u"]).dictionary_encode()}
    ),
}

if __name__ == "__main__":
    from pyrite.workload.input.fingerprints import Fingerprints

    surveys = {name: Fingerprints().survey(value) for name, value in VALUES.items()}
    json.dump({name: [s.digest.hex(), *s.reasons] for name, s in surveys.items()}, sys.stdout)
