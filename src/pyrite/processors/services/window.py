"""The calls that one processor has begun and whose results it has not emitted yet, in the order of
their items. Pure code: others make the calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class Call:
    """The call for one item. Whoever makes it sets `made` or `error`, and then calls `end`. What it
    makes may come in pieces; then it ends several times."""

    __slots__ = (
        *("_tell", "awaited", "error", "failures", "is_cancelled"),
        *("is_done", "item", "made", "rest", "task", "wanted"),
    )

    def __init__(self, item: Any, tell: Callable[[Call], None]) -> None:
        self.item = item
        self.made: Any = None
        self.rest: Any = None
        """The iterator that has more, if what was made is only a piece."""
        self.wanted: asyncio.Event | None = None
        """Set when another piece is wanted, if the task makes it."""
        self.error: BaseException | None = None
        self.failures = 0
        """How many tries have failed."""
        self.is_done = False
        self.is_cancelled = False
        """Nobody needs the result any more."""
        self.task: asyncio.Task[None] | None = None
        self.awaited: Any = None
        """What the task awaits."""
        self._tell = tell

    def end(self) -> None:
        """The result, or the error, is there."""
        self.is_done = True
        self._tell(self)


class Window:
    """Holds at most `limit` calls. They leave in the order in which they came, when they are done.

    >>> window = Window(2, lambda call: None)
    >>> first, second = window.add("ab")
    >>> second.end()
    >>> window.room, window.take()
    (0, None)
    >>> first.end()
    >>> window.take().item, window.take().item, window.room
    ('a', 'b', 2)
    """

    __slots__ = ("_calls", "_limit", "_tell")

    def __init__(self, limit: int, tell: Callable[[Call], None]) -> None:
        self._limit = limit
        self._tell = tell
        self._calls: deque[Call] = deque()

    @property
    def room(self) -> int:
        """How many more calls it takes."""
        return self._limit - len(self._calls)

    @property
    def first(self) -> Call | None:
        """The call whose result is emitted next. Any thread may ask for it."""
        try:
            return self._calls[0]
        except IndexError:
            return None

    def add(self, items: Iterable[Any]) -> list[Call]:
        """New calls, for as many items as there is room."""
        calls = [Call(item, self._tell) for item in items]
        assert len(calls) <= self.room
        self._calls.extend(calls)
        return calls

    def take(self) -> Call | None:
        """Removes the first call, if it is done."""
        calls = self._calls
        return calls.popleft() if calls and calls[0].is_done else None

    def __iter__(self) -> Iterator[Call]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)
