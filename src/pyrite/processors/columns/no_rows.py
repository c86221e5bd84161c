"""Frames without rows tell which columns there are, and nothing else. Their types do not count
where other frames have rows: a user's function cannot always tell the types of nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrite.columns.frames import as_batch, rows_in


class Columns:
    """The columns of a side of which no rows have come."""

    def __init__(self) -> None:
        self._empty: Any = None
        self._have_rows = False

    def has_rows(self, frame: Any) -> bool:
        """Whether a frame has rows. If not, it is remembered."""
        if rows_in(frame):
            self._have_rows = True
            return True
        if self._empty is None:
            self._empty = frame
        return False

    def if_no_rows_came(self) -> Iterator[Any]:
        """A frame without rows, if one came and no rows did. Gives it once."""
        if self._empty is not None and not self._have_rows:
            yield self._empty
        self._empty = None

    def save(self) -> Iterator[Any]:
        """The frame that `if_no_rows_came` would give, for `restore`. Rows are saved elsewhere."""
        if self._empty is not None and not self._have_rows:
            yield as_batch(self._empty)

    def restore(self, saved: Any) -> None:
        """`saved` is what `save` gave, or a batch of a state, which has rows."""
        self.has_rows(saved)
