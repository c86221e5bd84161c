"""Which children of a node are new: a leader is only told that the children have changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class Newcomers:
    """Each child is new once, until it is gone.

    >>> plans = Newcomers(seen=["job1"])
    >>> plans.listed(["job1", "job2", "job3"])
    >>> plans.next(), plans.next(), plans.next()
    ('job2', 'job3', None)
    >>> plans.gone("job2")
    >>> plans.listed(["job1", "job2"])
    >>> plans.next()
    'job2'
    """

    def __init__(self, seen: Iterable[str] = ()) -> None:
        self._seen = set(seen)
        self._waiting: deque[str] = deque()

    def listed(self, names: list[str]) -> None:
        self._waiting.extend(name for name in names if name not in self._seen)
        self._seen = set(names)

    def gone(self, name: str) -> None:
        """The leader has deleted it. If it is listed again it has come again."""
        self._seen.discard(name)

    def next(self) -> str | None:
        return self._waiting.popleft() if self._waiting else None

    def __bool__(self) -> bool:
        return bool(self._waiting)
