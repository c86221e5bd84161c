"""Finds the job that a person means: by its id, the beginning of its id, or its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from pyrite.errors import PyriteError


class Choice(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def has_ended(self) -> bool: ...
    @property
    def status(self) -> str: ...


Row = TypeVar("Row", bound=Choice)


def chosen(text: str, rows: Sequence[Row], *, nothing: str) -> Row:
    """The job with this id; else the one that has not ended and has this name; else the one whose
    id begins with it. `nothing` is the error if there is none."""
    exact = [row for row in rows if row.id == text]
    called = [row for row in rows if row.name == text and not row.has_ended]
    begun = [row for row in rows if text and row.id.startswith(text)]
    for candidates in (exact, called, begun):
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            ids = ", ".join(row.id for row in candidates[:5])
            more = ", ..." if len(candidates) > 5 else ""
            raise PyriteError(
                f"'{text}' may be {len(candidates)} jobs: {ids}{more}; give the id of one"
            )
    ended = [row for row in rows if row.name == text]
    if ended:
        raise has_ended(ended[0])
    raise PyriteError(nothing)


def has_ended(row: Choice) -> PyriteError:
    return PyriteError(f"{named(row)} has ended: it {how(row.status)}")


def named(row: Choice) -> str:
    return f"job {row.id}" if row.name is None else f"job {row.id} ('{row.name}')"


def how(status: str) -> str:
    """How a job ended, as a predicate."""
    words = {"cancelled": "was cancelled", "lost": "was lost: the process that ran it is gone"}
    return words.get(status, status)
