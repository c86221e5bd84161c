"""Whether a module in memory is what its source says."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from pyrite.workload.input.sources.loaded_code import is_of

SOURCE = """
import functools
from dataclasses import dataclass
from enum import Enum

LIMIT = 3
seen = 0


def plain(x, y=1):
    return [x for _ in range(y)]


@functools.lru_cache
def cached():
    return 1


def count():
    global seen
    seen += 1


class Kind(Enum):
    ROUND = 1


@dataclass(slots=True)
class Point:
    x: int = 1


@dataclass
class Shape:
    size: int = 1
    COLOUR = "red"

    @property
    def area(self):
        return self.size

    @staticmethod
    def make():
        return lambda: Shape()


Shape.Other = Shape
"""


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    made = ModuleType("shapes_in_memory")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    exec(compile(SOURCE, "shapes.py", "exec", dont_inherit=True), vars(made))
    return made


def test_an_unchanged_source_is_that_of_the_module(module: ModuleType) -> None:
    vars(module)["count"]()
    assert is_of(module, SOURCE.encode(), "shapes.py")
    assert is_of(module, f"# a comment\n\n{SOURCE}".encode(), "shapes.py")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("range(y)", "range(y + 1)"),
        ("y=1", "y=2"),
        ("return 1", "return 2"),
        ('"red"', '"blue"'),
        ("return self.size", "return self.size**2"),
        ("lambda: Shape()", "lambda: Shape(2)"),
        ("def count():", "def count(:"),
    ],
)
def test_an_edited_source_is_not(module: ModuleType, old: str, new: str) -> None:
    assert old in SOURCE
    assert not is_of(module, SOURCE.replace(old, new).encode(), "shapes.py")
