"""What has been done of a part so far, while its job runs. Each peer that gets the part keeps a
tally of what it does itself; those of all peers together say how far the part is.

What a peer has not committed is done again by the next one. So a tally says both: what is
committed, which adds up over the peers, and the most that was seen, which does not. Together they
never fall, whoever dies, and they are exact when everything is committed and told.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyrite.durable.protocol.workflow import Part
from pyrite.engine.metrics import added_up, plus

logger = logging.getLogger("pyrite.durable")

Metrics = Mapping[str, Mapping[str, Any]]
"""By vertex."""

COUNTED: Final = (
    *("received", "emitted", "skipped", "dead_letters"),
    *("busy_seconds", "spilled_bytes"),
)
"""What only grows. The rest of the metrics is as it is now."""
MOST_PROCESSORS: Final = 64
NOTHING: Final[Mapping[str, Any]] = {
    **dict.fromkeys((*COUNTED, "queue_fill", "held_bytes", "done"), 0),
    "processors": [],
    "fused_with": [],
    "inbound": {},
    "heaviest_keys": [],
}


@dataclass(frozen=True, slots=True)
class Told:
    """A tally as the store has it. `so_far` is the most that its peer has seen of the part, and
    `committed` what of it is committed, of which only what is counted is told. Both are without
    what other peers have done."""

    task: str
    member: int
    offer: int
    so_far: Metrics
    committed: Mapping[str, Mapping[str, Any]]

    def in_short(self) -> Told:
        """The same without single processors."""
        return replace(self, so_far=_without(self.so_far))

    def words(self) -> list[Any]:
        """As JSON, in which most often what is committed is all."""
        same = all(_counts(self.so_far[name]) == self.committed.get(name) for name in self.so_far)
        committed = None if same else self.committed
        return [self.task, self.member, self.offer, self.so_far, committed]

    @classmethod
    def read(cls, words: Sequence[Any]) -> Told:
        task, member, offer, so_far, committed = words
        if committed is None:
            committed = {name: _counts(vertex) for name, vertex in so_far.items()}
        return cls(task, member, offer, so_far, committed)


class Tally:
    """What one peer does of one part. `look` gives what it has done since its last commit; it is
    called when the tally is told, not more often. With `by_processor` the busiest processors are
    told, too; else the part counts as one."""

    def __init__(self, part: Part, offer: int, *, by_processor: bool = False) -> None:
        self.part = part
        self.offer = offer
        self._thin = _fewer if by_processor else _without
        self.look: Callable[[], Metrics] | None = None
        self._committed: dict[str, Any] = {}
        self._so_far: dict[str, Any] = {}
        self._untold: list[Metrics] = []

    def commits(self, more: Metrics) -> None:
        """Something was committed. Commits must not wait, so it is added up later."""
        self._untold.append(more)

    def told(self) -> Told | None:
        """What is done so far; None if that is nothing."""
        untold, self._untold = self._untold, []
        for more in untold:
            self._committed = plus(self._committed, self._thin(more))
        if self._committed:
            self._so_far = _highest(self._so_far, self._committed)
        if self.look is not None:
            try:
                now = plus(self._committed, self._thin(self.look()))
            except Exception:  # it is only about metrics
                logger.debug("what is done of %s cannot be told", self.part, exc_info=True)
            else:
                self._so_far = _highest(self._so_far, now)
        if not self._so_far:
            return None
        committed = {name: _counts(vertex) for name, vertex in self._committed.items()}
        return Told(self.part.task, self.part.member, self.offer, self._so_far, committed)


@dataclass(frozen=True, slots=True)
class Tallies:
    """What one peer tells of one job. `memory` is what its process takes, in bytes."""

    memory: int = 0
    told: tuple[Told, ...] = ()

    def text(self) -> str:
        words = [self.memory, [each.words() for each in self.told]]
        return json.dumps(words, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Tallies:
        memory, told = json.loads(text)
        return cls(memory, tuple(map(Told.read, told)))


@dataclass(frozen=True, slots=True)
class TaskShape:
    """What is known of a task: its vertices, how many parts it has, and how many are complete."""

    vertices: tuple[str, ...]
    parts: int
    complete: int


@dataclass(slots=True)
class _PartSoFar:
    metrics: dict[str, Any] = field(default_factory=dict)
    committed: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, told: Told) -> None:
        """The tally of the peer that had the part next."""
        for name, vertex in told.so_far.items():
            base = self.committed.setdefault(name, dict.fromkeys(COUNTED, 0))
            shown = self.metrics.get(name, NOTHING)
            counts = _counts(vertex)
            self.metrics[name] = {
                **NOTHING,
                **vertex,
                **{key: max(shown[key], base[key] + counts[key]) for key in COUNTED},
            }
        for name, committed in told.committed.items():
            base = self.committed.setdefault(name, dict.fromkeys(COUNTED, 0))
            self.committed[name] = {key: base[key] + committed.get(key, 0) for key in COUNTED}


def so_far(told: Iterable[Told], tasks: Sequence[TaskShape]) -> dict[str, Any]:
    """The metrics of a job by all its tallies. Each part is one processor, also if it has not told
    anything yet."""
    parts: dict[tuple[str, int], _PartSoFar] = {}
    for each in sorted(told, key=lambda each: each.offer):
        parts.setdefault((each.task, each.member), _PartSoFar()).add(each)
    known = [
        {name: _with_processors(vertex) for name, vertex in part.metrics.items()}
        for _, part in sorted(parts.items())
    ]
    order = dict.fromkeys(name for task in tasks for name in task.vertices)
    order |= dict.fromkeys(name for part in known for name in part)
    if not known:
        return {}
    one = _with_processors(NOTHING)
    for task in tasks:
        for name in task.vertices:  # a part on Spark tells of the vertices that have begun
            missing = task.parts - sum(name in part for part in known)
            known += [{name: one}] * missing
    total = added_up(known, list(order))
    for task in tasks:
        for name in task.vertices:
            total[name]["done"] = task.complete
    return total


def _with_processors(vertex: Mapping[str, Any]) -> dict[str, Any]:
    one = {key: vertex[key] for key in (*COUNTED, "queue_fill", "held_bytes", "done")}
    return {**vertex, "processors": vertex["processors"] or [one]}


def _counts(vertex: Mapping[str, Any]) -> dict[str, Any]:
    return {key: vertex.get(key, 0) for key in COUNTED}


def _without(metrics: Metrics) -> Any:
    return {name: {**vertex, "processors": []} for name, vertex in metrics.items()}


def _fewer(metrics: Metrics) -> Any:
    """A job on Spark may have thousands of them."""
    return {
        name: {**vertex, "processors": sorted(vertex["processors"], key=_idle)[:MOST_PROCESSORS]}
        for name, vertex in metrics.items()
    }


def _idle(processor: Mapping[str, Any]) -> int:
    return -int(processor["received"]) - int(processor["emitted"])


def _highest(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """As it is now, but nothing that is counted falls: a batch that raised is done again."""
    found = dict(before)
    for name, vertex in now.items():
        earlier = before.get(name, NOTHING)
        most = {key: max(earlier.get(key, 0), vertex.get(key, 0)) for key in COUNTED}
        found[name] = {**vertex, **most}
    return found
