"""The work of steps that take all their input before they give anything: groupings and sorts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import pyarrow as pa

from pyrite.columns.frames import compact, empty_batch
from pyrite.processors.columns.no_rows import Columns
from pyrite.processors.columns.small_batches import Small
from pyrite.processors.columns.steps import Work


class Absorber(Protocol):
    """A kernel that takes frames, and gives its results at the end."""

    def add(self, frame: Any) -> None: ...

    def results(self) -> Iterator[Any]: ...

    def save(self) -> Iterable[tuple[Any, Any]]: ...

    def restore(self, key: Any, batch: Any) -> None: ...

    def close(self) -> None: ...

    @property
    def held_bytes(self) -> int: ...

    @property
    def spilled_bytes(self) -> int: ...


COLUMNS = "columns"
"""The key of what a snapshot has of a side without rows."""


class AbsorbingWork(Work):
    has_state = True

    def __init__(self, kernel: Absorber) -> None:
        self._kernel = kernel
        self._columns = Columns()
        self._small = Small()
        self._expected: pa.Schema | None = None

    def expect(self, schema: pa.Schema) -> pa.Schema | None:
        self._expected = schema
        return None

    def take(self, item: Any, ordinal: int) -> Iterator[Any]:
        if self._columns.has_rows(item):
            if self._expected is not None:
                self._kernel.add(empty_batch(self._expected))
                self._expected = None
            for frame in self._small.add(compact(item)):
                self._kernel.add(frame)
        return iter(())

    def end(self) -> Iterator[Any]:
        self._settle()
        for frame in self._columns.if_no_rows_came():
            self._kernel.add(frame)
        return self._kernel.results()

    def save(self) -> Iterable[tuple[Any, Any]]:
        self._settle()
        yield from self._kernel.save()
        yield from ((COLUMNS, batch) for batch in self._columns.save())

    def _settle(self) -> None:
        for frame in self._small.rest():
            self._kernel.add(frame)

    def restore(self, key: Any, value: Any) -> None:
        self._columns.restore(value)
        if key != COLUMNS:
            self._kernel.restore(key, value)

    def close(self) -> None:
        self._kernel.close()

    @property
    def held_bytes(self) -> int:  # type: ignore[override]
        return self._kernel.held_bytes

    @property
    def spilled_bytes(self) -> int:  # type: ignore[override]
        return self._kernel.spilled_bytes
