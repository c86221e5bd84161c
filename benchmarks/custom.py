"""The chain with custom processors, as a user would write them: one method call and one emit per
item and vertex."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.work import count, group, halve, keep, scale
from pyrite import AbstractProcessor


class Scale(AbstractProcessor):
    def try_process_0(self, item: int) -> None:
        self.emit(scale(item))


class Keep(AbstractProcessor):
    def try_process_0(self, item: int) -> None:
        if keep(item):
            self.emit(item)


class Halve(AbstractProcessor):
    def try_process_0(self, item: int) -> None:
        self.emit(halve(item))


class CountByGroup(AbstractProcessor):
    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._results: Iterator[tuple[str, int]] | None = None

    def try_process_0(self, item: int) -> None:
        key = group(item)
        self._counts[key] = count(self._counts.get(key, 0), item)

    def complete(self) -> bool:
        if self._results is None:
            self._results = iter(self._counts.items())
        return self.emit_cooperatively(self._results)
