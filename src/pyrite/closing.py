"""Closing: what has a `close()` can be used in a `with` statement."""

from __future__ import annotations

from typing import Self


class Closing:
    """Calls `close()` at the end of a `with` block."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.close()
