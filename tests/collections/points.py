"""Keys and values that are classes of their own, in a module that members can import."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Point:
    x: Any
    y: Any


class Pair(NamedTuple):
    first: Any
    second: Any


class Color(IntEnum):
    RED = 1
