"""The runs of all sources as one list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from typing import Any, Final

from pyrite.errors import PyriteError
from pyrite.watching.history import ALL
from pyrite.watching.rows import RunRow, RunSource
from pyrite.watching.views import RunView


@dataclass(frozen=True, slots=True)
class Found:
    """A run, and the source that knows most about it."""

    source: RunSource
    view: RunView
    can_cancel: bool

    def to_json(self, after: float = ALL) -> dict[str, Any]:
        """With the points of the history that are later than `after`."""
        view = self.view
        return {
            **view.to_json(),
            "seconds": view.seconds,
            "items_in": view.items_in,
            "items_out": view.items_out,
            "can_cancel": self.can_cancel,
            "history": self.source.history(view.id, after),
        }


class Runs:
    """A run may be in several sources: the process that runs it, the journal that it writes, the
    deployment that keeps it. The first source that knows how it goes on is taken; one that has lost
    it only if no other knows more."""

    def __init__(self, sources: Callable[[], Sequence[RunSource]]) -> None:
        self._sources = sources

    def rows(
        self, *, search: str = "", states: Sequence[str] = (), kinds: Sequence[str] = ()
    ) -> list[RunRow]:
        """The newest first."""
        found: dict[str, RunRow] = {}
        for rows in _lists(self._sources()):
            for row in rows:
                if row.id not in found or found[row.id].state == "lost":
                    found[row.id] = row
        words = search.lower().split()
        chosen = [
            row
            for row in found.values()
            if (not states or row.state in states)
            and (not kinds or row.kind in kinds)
            and all(word in _text(row) for word in words)
        ]
        return sorted(chosen, key=lambda row: (row.submitted, row.id), reverse=True)

    def find(self, id: str) -> Found | None:
        """Raises PyriteError if the run is known, but its source cannot be reached now."""
        lost: Found | None = None
        problem: PyriteError | None = None
        for source in self._sources():
            try:
                view = source.view(id)
            except PyriteError as error:
                problem = error
                continue
            if view is None:
                continue
            found = Found(source, view, not view.has_ended)
            if view.state != "lost":
                return found
            lost = lost or found
        if lost is None and problem is not None:
            raise problem
        return lost


def _lists(sources: Sequence[RunSource]) -> list[Sequence[RunRow]]:
    """The rows of each source. Servers are asked at the same time: each may not answer."""
    if len(sources) < SEVERAL:
        return [source.rows() for source in sources]
    found: list[Future[Sequence[RunRow]]] = [Future() for _ in sources]
    for source, future in zip(sources, found, strict=True):
        # No pool: at the end of the process, Python would wait for its threads.
        Thread(target=_read, args=(source, future), name="pyrite-ui-rows", daemon=True).start()
    return [future.result() for future in found]


def _read(source: RunSource, found: Future[Sequence[RunRow]]) -> None:
    try:
        found.set_result(source.rows())
    except BaseException as error:
        found.set_exception(error)


SEVERAL: Final = 4


def _text(row: RunRow) -> str:
    """What is searched."""
    return f"{row.name} {row.id} {row.host} {row.pid} {row.failure or ''}".lower()
