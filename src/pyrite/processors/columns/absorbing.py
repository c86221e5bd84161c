"""The work of steps that take all their input before they give anything: groupings and sorts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import pyarrow as pa

from pyrite.columns.frames import as_batch, compact, empty_batch, rows_in
from pyrite.columns.packing.splitting import merged
from pyrite.processors.columns.steps import Work


class Absorber(Protocol):
    """A kernel that takes frames, and gives its results at the end."""

    def add(self, frame: Any) -> None: ...

    def results(self) -> Iterator[Any]: ...

    def save(self) -> Iterable[tuple[Any, Any]]: ...

    def restore(self, key: Any, batch: Any) -> None: ...

    def close(self) -> None: ...


COLUMNS = "columns"
"""The key of what a snapshot has of a side without rows."""


class Columns:
    """What columns a side has of which no rows have come. The types of frames without rows do not
    count where others have rows: a function cannot always tell them."""

    def __init__(self) -> None:
        self._empty: Any = None
        self._have_rows = False
        self._schema: Any = None
        """Of the last frame with rows."""

    def has_rows(self, frame: Any) -> bool:
        if rows_in(frame):
            self._have_rows = True
            self._schema = getattr(frame, "schema", None)
            return True
        if self._empty is None:
            self._empty = frame
        return False

    def save(self, *, rows_are_held: bool = True) -> Iterator[Any]:
        """What `restore` needs besides the rows that are held."""
        if not self._have_rows:
            if self._empty is not None:
                yield as_batch(self._empty)
        elif not rows_are_held and isinstance(self._schema, pa.Schema):
            yield empty_batch(self._schema)

    def restore(self, saved: Any) -> None:
        """`saved` is what `save` gave, or a part of a state, which has rows."""
        self.has_rows(saved)

    def if_no_rows_came(self) -> Iterator[Any]:
        """A frame without rows, if one came and no rows did. Gives it once."""
        if self._empty is not None and not self._have_rows:
            yield self._empty
        self._empty = None


class Small:
    """Puts small batches together before a kernel gets them: each call of it takes a fraction of a
    millisecond, however few rows there are."""

    LARGE = 64 << 10
    MANY = 512

    def __init__(self) -> None:
        self._held: list[pa.RecordBatch] = []

    def add(self, frame: Any) -> Iterator[Any]:
        """The frames that are ready, in their order."""
        is_small = isinstance(frame, pa.RecordBatch) and frame.nbytes < self.LARGE
        if not is_small or (self._held and self._held[0].schema != frame.schema):
            yield from self.rest()
        if not is_small:
            yield frame
            return
        self._held.append(frame)
        if len(self._held) >= self.MANY:
            yield from self.rest()

    def rest(self) -> Iterator[Any]:
        held, self._held = self._held, []
        if len(held) > 1:
            try:
                held = [merged(held)]
            except pa.ArrowException:  # such as dictionaries that are too large together
                pass
        yield from held


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
