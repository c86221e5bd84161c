"""What `verify` returns: the vertices whose results depend on something that they should not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pyrite.functions import shorten

Cause: TypeAlias = Literal["chance", "order", "parallelism", "spark"]

_DEPENDS: dict[Cause, str] = {
    "chance": "emits something else each time, for the same items in the same order",
    "order": "depends on the order of its items",
    "parallelism": "depends on how its items are spread over processors",
    "spark": "emits something else on Spark than in this process, for the same items",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A vertex that emits something else in another run, although the same items came in."""

    vertex: str
    cause: Cause
    """What it depends on: chance, the order of its items, the parallelism, or whether it runs on
    Spark."""
    before: tuple[Any, ...]
    """Items that it emitted only in the first run."""
    after: tuple[Any, ...]
    """Items that it emitted only in the other run."""
    why: str | None
    """For a note: why this is not a fault."""
    origin: str | None
    """The file and line that added the vertex, if they are known."""

    def __str__(self) -> str:
        added = "" if self.origin is None else f" (added in {self.origin})"
        text = f"vertex '{self.vertex}'{added} {_DEPENDS[self.cause]}"
        if self.why is not None:
            return f"{text}: {self.why}"
        before, after = _some(self.before), _some(self.after)
        return f"{text}: it emitted {before} in one run, and {after} in another"


class Verification:
    """The outcome of `verify`. It is true if nothing was found. `print` shows it in sentences."""

    def __init__(
        self, findings: Sequence[Finding], notes: Sequence[Finding], runs: Sequence[str]
    ) -> None:
        self.findings = tuple(findings)
        """The vertices that make results depend on order, parallelism or chance, in topological
        order."""
        self.notes = tuple(notes)
        """Differences that are no faults: what a step leaves unspecified, and rounding."""
        self.runs = tuple(runs)
        """The runs that were compared, in words."""

    @property
    def ok(self) -> bool:
        """Whether all runs gave the same results, except for the notes."""
        return not self.findings

    @property
    def vertices(self) -> tuple[str, ...]:
        """The names of the vertices that were found."""
        return tuple(finding.vertex for finding in self.findings)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        compared = f"{len(self.runs)} runs were compared: {'; '.join(self.runs)}."
        lines = [f"{_sentence(finding)}" for finding in self.findings]
        lines += [f"Note: {note}." for note in self.notes]
        if self.ok:
            except_for = ", except for what the notes say" if self.notes else ""
            lines.insert(0, f"All runs gave the same results{except_for}.")
        return "\n".join([*lines, compared])

    def __repr__(self) -> str:
        return str(self)


def _sentence(finding: Finding) -> str:
    text = str(finding)
    return f"{text[0].upper()}{text[1:]}."


def _some(items: Sequence[Any], most: int = 3) -> str:
    if not items:
        return "nothing else"
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(shorten(item, 60) for item in items[:most]) + more
