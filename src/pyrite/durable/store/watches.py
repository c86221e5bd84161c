"""Which watches fire when the changes of a log of changes are seen, and in which order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from pyrite.durable.store.limits import parent_of


class Change(NamedTuple):
    """A node was created, set or deleted. `came_or_went` is False if it was set."""

    sequence: int
    path: str
    came_or_went: bool


class Watches:
    """A watch is armed at the sequence of the last change that its reader has seen. It fires once,
    at the first later change of its node."""

    def __init__(self) -> None:
        self._nodes: dict[str, int] = {}
        self._children: dict[str, int] = {}
        self._fired: deque[str] = deque()

    def arm(self, path: str, at: int) -> None:
        self._nodes[path] = at

    def arm_children(self, path: str, at: int) -> None:
        self._children[path] = at

    def covers(self, path: str) -> bool:
        """Whether the coming and going of a node would fire a watch."""
        return path in self._nodes or parent_of(path) in self._children

    def see(self, changes: Iterable[Change]) -> None:
        for sequence, path, came_or_went in changes:
            self._see(self._nodes, path, sequence)
            if came_or_went:
                self._see(self._children, parent_of(path), sequence)

    def fire_all(self) -> None:
        """For one who cannot know which changes there were."""
        for armed in (self._nodes, self._children):
            self._fired.extend(armed)
            armed.clear()

    def take(self) -> str | None:
        """The path of the next watch that has fired."""
        return self._fired.popleft() if self._fired else None

    def _see(self, armed: dict[str, int], path: str, sequence: int) -> None:
        at = armed.get(path)
        if at is not None and sequence > at:
            del armed[path]
            self._fired.append(path)
