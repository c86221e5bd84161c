"""Runs the sides of a comparison in turn, and makes a table with the best time of each side, its
ratio to the baseline, and whether it met its aim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time

from rich.table import Table


class CannotRun(Exception):
    """A side cannot run. The message says why, and is shown in its row."""


class WrongOutcome(Exception):
    """The result of Pyrite is wrong, so its time would mean nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost:
    """The aim that the time per item is at most `times` that of the side `than`, which does a part
    of the same work."""

    times: float
    than: str

    def __str__(self) -> str:
        return f"at most {self.times:g} x {self.than}"

    def verdict(self, ratio: float) -> str:
        # The whole work cannot be faster than a part of it. Something else slowed down the other
        # side in every round.
        return _DOUBTFUL if ratio < 1 else mark(ratio <= self.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMoreThan:
    """The aim that the time per item is at most `times` that of the side `than`, which does the
    same work."""

    times: float
    than: str

    def __str__(self) -> str:
        return f"at most {self.times:g} x {self.than}"

    def verdict(self, ratio: float) -> str:
        return mark(ratio <= self.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeast:
    """The aim that the time per item is at least `times` that of the side `than`."""

    times: float
    than: str

    def __str__(self) -> str:
        return f"at least {self.times:g} x {self.than}"

    def verdict(self, ratio: float) -> str:
        return mark(ratio >= self.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One way to do the work. `run` does it once for `items` items, checks the result, and returns
    the duration in seconds."""

    name: str
    items: int
    run: Callable[[], float]
    rounds: int = 5
    aim: AtMost | NoMoreThan | AtLeast | None = None


def compare(title: str, sides: Sequence[Side], *, item: str = "item") -> Table:
    """Runs the sides and makes a table of them. The first side is the baseline.

    In each round, all sides run once, so that a slow phase of the machine affects all of them.
    """
    best: dict[str, float] = {}
    worst: dict[str, float] = {}
    excuses: dict[str, str] = {}
    for turn in range(max(side.rounds for side in sides)):
        for side in sides:
            if turn < side.rounds and side.name not in excuses:
                try:
                    taken = side.run()
                    best[side.name] = min(taken, best.get(side.name, taken))
                    worst[side.name] = max(taken, worst.get(side.name, taken))
                except CannotRun as reason:
                    excuses[side.name] = str(reason)
    per_item = {
        side.name: best[side.name] / side.items for side in sides if side.name not in excuses
    }
    table = Table("side", title=title, title_justify="left")
    for heading in (f"{item}s", "best s", "worst s", f"µs per {item}", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("aim")
    for side in sides:
        if side.name in excuses:
            table.add_row(side.name, f"{side.items:,}", "-", "-", "-", "-", excuses[side.name])
        else:
            table.add_row(
                side.name,
                f"{side.items:,}",
                f"{best[side.name]:.4f}",
                f"{worst[side.name]:.4f}",
                f"{per_item[side.name] * 1e6:.3f}",
                f"{per_item[side.name] / per_item[sides[0].name]:.2f} x",
                _verdict(side, per_item),
            )
    return table


def cpu_seconds(action: Callable[[], object]) -> float:
    """The CPU time of a call that does all its work in this process. Other processes affect it less
    than the duration."""
    started = process_time()
    action()
    return process_time() - started


def seconds(action: Callable[[], object]) -> float:
    """The duration of a call in seconds."""
    started = perf_counter()
    action()
    return perf_counter() - started


_DOUBTFUL = "[bold yellow]doubtful, run it again[/bold yellow]"


def mark(met: bool) -> str:
    return "[green]met[/green]" if met else "[bold red]missed[/bold red]"


def _verdict(side: Side, per_item: dict[str, float]) -> str:
    if side.aim is None:
        return ""
    if side.aim.than not in per_item:
        return f"{side.aim}: unknown"
    ratio = per_item[side.name] / per_item[side.aim.than]
    return f"{side.aim}: {side.aim.verdict(ratio)}, {ratio:.2f} x"
