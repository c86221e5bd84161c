"""What all named maps and lists have in common, wherever their contents are: everything that only
needs a copy of them."""

from __future__ import annotations

import builtins
import sys
from abc import abstractmethod
from collections.abc import (
    ItemsView,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    ValuesView,
)
from reprlib import recursive_repr
from typing import Any


class NamedMap(MutableMapping[Any, Any]):
    """A named map. Each call is atomic. Iteration sees the contents at its start. All NaNs are one
    key."""

    __slots__ = ("name",)
    name: str

    @abstractmethod
    def copy(self) -> dict[Any, Any]:
        """The current contents as a dict."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.copy())

    def items(self) -> ItemsView[Any, Any]:
        return self.copy().items()

    def values(self) -> ValuesView[Any]:
        return self.copy().values()

    def __eq__(self, other: object) -> bool:
        return self.copy() == (dict(other.items()) if isinstance(other, Mapping) else other)

    __hash__ = None  # type: ignore[assignment]

    @recursive_repr()  # a collection may contain itself
    def __repr__(self) -> str:
        return f"Map({self.name!r}, {self.copy()!r})"


class NamedList(MutableSequence[Any]):
    """A named list. Each call is atomic. Iteration sees the contents at its start."""

    __slots__ = ("name",)
    name: str

    @abstractmethod
    def copy(self) -> builtins.list[Any]:
        """The current contents as a list."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.copy())

    def index(self, value: Any, start: int = 0, stop: int = sys.maxsize) -> int:
        return self.copy().index(value, start, stop)

    def __eq__(self, other: object) -> bool:
        return self.copy() == (other.copy() if isinstance(other, NamedList) else other)

    __hash__ = None  # type: ignore[assignment]

    @recursive_repr()  # a collection may contain itself
    def __repr__(self) -> str:
        return f"List({self.name!r}, {self.copy()!r})"
