"""The work of steps that take all their input before they give anything: groupings and sorts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from pyrite.processors.columns.steps import Work


class Absorber(Protocol):
    """A kernel that takes frames, and gives its results at the end."""

    def add(self, frame: Any) -> None: ...

    def results(self) -> Iterator[Any]: ...

    def save(self) -> Iterable[tuple[Any, Any]]: ...

    def restore(self, key: Any, batch: Any) -> None: ...

    def close(self) -> None: ...


class AbsorbingWork(Work):
    has_state = True

    def __init__(self, kernel: Absorber) -> None:
        self._kernel = kernel

    def take(self, item: Any, ordinal: int) -> Iterator[Any]:
        self._kernel.add(item)
        return iter(())

    def end(self) -> Iterator[Any]:
        return self._kernel.results()

    def save(self) -> Iterable[tuple[Any, Any]]:
        return self._kernel.save()

    def restore(self, key: Any, value: Any) -> None:
        self._kernel.restore(key, value)

    def close(self) -> None:
        self._kernel.close()
