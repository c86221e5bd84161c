"""How the engine handles errors of a vertex: it counts bad records, makes dead letters, fails the
job if there are too many, and says when an item is tried again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyrite.bad_records.letters import letter_of, without_addresses
from pyrite.errors import ProcessorError, PyriteError
from pyrite.functions import message_of
from pyrite.retries import Retry


class TooManyBadRecords(PyriteError):
    """A vertex had more items that it could not process than its `at_most` allows."""


class NotAboutOneItem(ProcessorError):
    """An error after which a step cannot go on with other items, or with another try: its state is
    wrong. It fails the job, whatever `on_error` and `retry` say."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """Stands for an item that a source could not read."""

    item: Any
    error: Exception


@dataclass(frozen=True, slots=True)
class Handling:
    """How the engine handles the errors of a vertex."""

    keeps: bool = False
    """Whether there is an edge for dead letters."""
    at_most: int | float | None = None
    retry: Retry | None = None
    fails: bool = False
    """Whether an error fails the job, after the last try."""


class Handler:
    """Takes the items that one processor of a vertex cannot process: `handler(item, error)`. It
    counts them, and adds dead letters to `letters`. The handlers of a vertex in one process know
    each other, and fail the job as soon as there are too many. It also says when an item is tried
    again."""

    __slots__ = (
        *("_at_most", "_blocks", "_clock", "_letters", "_others", "_retry"),
        *("count", "fails", "is_waiting", "vertex"),
    )

    def __init__(
        self,
        vertex: str,
        handling: Handling,
        letters: list[Any] | None,
        others: list[Handler] | None = None,
        *,
        blocks: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """If it `blocks`, it sleeps before an item is tried again: a task that must do the same in
        each attempt cannot do other things meanwhile."""
        self.vertex = vertex
        self.count = 0
        self._at_most = handling.at_most if isinstance(handling.at_most, int) else None
        self._letters = letters
        self._retry = handling.retry
        self._blocks = blocks
        self._clock = clock
        self.fails = handling.fails
        self.is_waiting = False
        self._others = [] if others is None else others
        self._others.append(self)

    @property
    def keeps(self) -> bool:
        return self._letters is not None

    def __call__(self, item: Any, error: BaseException) -> None:
        if self.fails or isinstance(error, NotAboutOneItem):
            raise error
        self.count += 1
        if self._at_most is not None:
            count = sum(other.count for other in self._others)
            if count > self._at_most:
                raise TooManyBadRecords(
                    f"vertex '{self.vertex}' could not process {_items(count)}, and its on_error "
                    f"allows at most {self._at_most}; the last error was "
                    f"{without_addresses(message_of(error))}"
                ) from error
        if self._letters is not None:
            self._letters.append(letter_of(self.vertex, item, error))

    def seconds(self, error: BaseException, failures: int) -> float | None:
        """How long to wait before an item is tried again; None if it is not."""
        if self._retry is None or isinstance(error, NotAboutOneItem):
            return None
        return self._retry.seconds(error, failures)

    def again(self, error: BaseException, failures: int) -> float | None:
        """When an item is to be tried again; None if it is not."""
        seconds = self.seconds(error, failures)
        return None if seconds is None else self._clock() + seconds

    def waits(self, until: float) -> bool:
        """Whether to wait on for that time."""
        left = until - self._clock()
        if left > 0 and self._blocks:
            time.sleep(left)
            left = 0.0
        self.is_waiting = left > 0
        return self.is_waiting


def over_limit(handling: Handling, counts: Mapping[str, Any], edges: int = 1) -> str | None:
    """How the bad records of a vertex exceed what it may have, in words; None if they do not.
    `counts` are the metrics of the vertex in the whole job, and `edges` the number of its outbound
    edges, each of which counts as emitted."""
    bad = counts["skipped"] + counts["dead_letters"]
    if handling.at_most is None:
        return None
    if isinstance(handling.at_most, int):
        if bad <= handling.at_most:
            return None
        return f"{_items(bad)}, and its on_error allows at most {handling.at_most}"
    # A source receives nothing. What it could read, and what it could not, is all that it had.
    total = counts["received"] or counts["emitted"] // max(edges, 1) + bad
    if bad <= handling.at_most * total * _ROUNDING:
        return None
    share = f"{handling.at_most:.6g}"
    return (
        f"{bad} of {_items(total)}, and its on_error allows at most {share} of them; without "
        "on_error, the job would fail with the first of the errors"
    )


_ROUNDING = 1 + 1e-12
"""A share such as 0.29 or 1 / 3 has no exact float, and 0.29 * 100 is less than 29."""


def _items(count: int) -> str:
    return f"{count} item{'' if count == 1 else 's'}"
