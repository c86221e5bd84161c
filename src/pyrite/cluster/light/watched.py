"""The figures of one light job on its coordinator: it asks the members of the job when somebody
asks for them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from pyrite.cluster.light.figures import PartFigures


class Watched:
    """What each member has told last, so that nothing falls while one of them is late, or has ended
    its part. Used by the member's own thread alone."""

    def __init__(self) -> None:
        self._known: dict[int, PartFigures] = {}
        self._ended: set[int] = set()
        self._untold: set[int] = set()
        """The members that have completed their parts, and keep their last figures."""
        self._asking: list[Future[list[PartFigures]]] = []
        self._left: set[int] = set()

    def figures(self) -> list[PartFigures]:
        return [self._known[index] for index in sorted(self._known)]

    def last_figures(self, count: int) -> list[PartFigures]:
        """Those of so many members at the end; empty if some have others by now."""
        return self.figures() if len(self._known) == count and not self._untold else []

    def ask(
        self, count: int, ask: Callable[[int, Callable[[PartFigures | None], None]], None]
    ) -> Future[list[PartFigures]]:
        """The figures of all members, when they have answered, or when this is called again. `ask`
        asks one member and calls what it was given, on this thread, with its answer."""
        self.answer()
        future: Future[list[PartFigures]] = Future()
        self._asking.append(future)
        self._left = set(range(count)) - self._ended
        for index in sorted(self._left):
            ask(index, lambda found, index=index: self._told(index, found))  # type: ignore[misc]
        if not self._left:
            self.answer()
        return future

    def part_ended(self, index: int, metrics: bytes, *, is_well: bool = True) -> None:
        """A member has ended its part. If it has not told its last figures, it keeps them for those
        who ask, unless it is lost."""
        if not metrics and is_well:
            self._untold.add(index)
        if metrics:
            self._ended.add(index)
            self._known[index] = PartFigures(metrics)
            self._told(index, None)

    def answer(self) -> None:
        """Answers those who have asked with what is known."""
        asking, self._asking = self._asking, []
        for future in asking:
            future.set_result(self.figures())

    def _told(self, index: int, found: PartFigures | None) -> None:
        if found is not None and index not in self._ended:
            self._known[index] = found
        self._left.discard(index)
        if not self._left:
            self.answer()
