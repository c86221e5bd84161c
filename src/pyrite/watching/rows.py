"""RunRow: a run in a list of runs, and RunSource: where runs are read from and cancelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import UnionType
from typing import Any, Final, Protocol

from pyrite.functions import shorten, shorten_text
from pyrite.watching.history import ALL, HistoryDocument
from pyrite.watching.log_lines import LogLine
from pyrite.watching.views import Kind, RunState, RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """Times are in seconds since 1970, durations in seconds."""

    id: str
    name: str
    kind: Kind
    state: RunState
    submitted: float
    ended: float | None = None
    seconds: float = 0.0
    items_in: int = 0
    items_out: int = 0
    rate_in: float = 0.0
    """Items per second that its sources emit."""
    host: str = ""
    pid: int = 0
    failure: str | None = None
    """The first line of the error."""
    can_cancel: bool = False

    @classmethod
    def of(cls, view: RunView, *, can_cancel: bool) -> RunRow:
        fed = {edge.destination for edge in view.edges}
        failure = view.failure
        return cls(
            id=view.id,
            name=view.name,
            kind=view.kind,
            state=view.state,
            submitted=view.submitted,
            ended=view.ended,
            seconds=view.seconds,
            items_in=view.items_in,
            items_out=view.items_out,
            rate_in=sum(each.emitted_rate for each in view.vertices if each.name not in fed),
            host=view.host,
            pid=view.pid,
            failure=None if failure is None else first_line(failure.message),
            can_cancel=can_cancel and not view.has_ended,
        )

    @property
    def status(self) -> str:
        return self.state

    @property
    def has_ended(self) -> bool:
        return self.state not in ("starting", "running")

    def as_lost(self) -> RunRow:
        return replace(self, state="lost", can_cancel=False)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> RunRow:
        """Keys that are not known are left out: a newer version may have written them. Raises
        TypeError if a value is not of its type: one damaged row must not break a list."""
        given = {name: value for name, value in found.items() if name in _TYPES}
        for name, value in given.items():
            if not isinstance(value, _TYPES[name]):
                raise TypeError(f"'{name}' of a run cannot be {shorten(value)}")
        return cls(**given)


def first_line(text: str) -> str:
    return shorten_text(next(iter(text[: LONGEST_LINE + 1].splitlines()), ""), LONGEST_LINE)


LONGEST_LINE: Final = 500

_TYPES: Final[Mapping[str, type[Any] | UnionType]] = {
    "id": str,
    "name": str,
    "kind": str,
    "state": str,
    "submitted": float | int,
    "ended": float | int | None,
    "seconds": float | int,
    "items_in": int,
    "items_out": int,
    "rate_in": float | int,
    "host": str,
    "pid": int,
    "failure": str | None,
    "can_cancel": bool,
}


class RunSource(Protocol):
    """The runs of this process, of a journal, or of a deployment."""

    def rows(self) -> Sequence[RunRow]:
        """All runs, the newest first."""

    def view(self, id: str) -> RunView | None:
        """None if there is no such run here."""

    def history(self, id: str, after: float = ALL) -> HistoryDocument:
        """The rates of its vertices over time, at times later than `after`."""

    def log(self, id: str, after: int = 0) -> Sequence[LogLine]:
        """The lines with the number `after` and those that follow it."""

    def cancel(self, id: str) -> bool:
        """Asks the run to stop. False if it has ended, or is not here."""
