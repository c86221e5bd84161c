"""RunView: what is known of one run at one moment, as plain data. The page, the notebook, the
terminal and the journal of runs all show these, and nothing else. A view is JSON in a file and on
the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Final, Literal

RunState = Literal["starting", "running", "completed", "failed", "cancelled", "lost"]
"""`lost`: the process that ran the job is gone, and never said how the job ended."""
VertexState = Literal["waiting", "running", "completed", "failed", "cancelled"]
Kind = Literal["light", "light on members", "normal", "durable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyKey:
    """A key with many items, as a sketch of a partitioned edge estimates it."""

    edge: str
    key: str
    """The repr of the key, shortened."""
    count: int
    share: float
    """Of all items of the edge, from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorView:
    received: int = 0
    emitted: int = 0
    busy_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VertexView:
    name: str
    state: VertexState = "waiting"
    received: int = 0
    emitted: int = 0
    skipped: int = 0
    """Items that it could not process, which were left out."""
    dead_letters: int = 0
    queue_fill: int = 0
    busy_seconds: float = 0.0
    received_rate: float = 0.0
    """Items per second, over the last few seconds."""
    emitted_rate: float = 0.0
    held_bytes: int = 0
    """What its groups, joins and sorts hold in memory, as far as they count it."""
    spilled_bytes: int = 0
    """What these have written to files, because it did not fit."""
    skew: float = 1.0
    """What its busiest processor has received, divided by the mean of all: 1 is even."""
    heaviest_keys: tuple[HeavyKey, ...] = ()
    processors: tuple[ProcessorView, ...] = ()
    """At most MOST_PROCESSORS, the busiest first."""
    processor_count: int = 0
    fused_with: tuple[str, ...] = ()
    step: str = ""
    """The step that it runs, in short."""
    origin: str | None = None
    """The file and line that added it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeView:
    source: str
    destination: str
    label: str = ""
    fill: int = 0
    """Items that wait on it."""
    capacity: int = 0
    """How many items may wait on it; 0 if that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageView:
    """A stage of a job on Spark with its tasks, or a task of a durable job with its parts."""

    label: str
    done: int
    total: int
    rate: float = 0.0
    """How many are done per second, over the last few seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """A process that the job runs in."""

    member: str
    host: str = ""
    pid: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureView:
    message: str
    vertex: str | None = None
    edge: str | None = None
    item: str | None = None
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    id: str
    """That of the execution."""
    job_id: str
    name: str
    kind: Kind
    state: RunState
    submitted: float
    """In seconds since 1970, as all times here."""
    ended: float | None = None
    seen: float = 0.0
    """When this was so."""
    host: str = ""
    pid: int = 0
    """The process that started it."""
    vertices: tuple[VertexView, ...] = ()
    edges: tuple[EdgeView, ...] = ()
    stages: tuple[StageView, ...] = ()
    members: tuple[MemberView, ...] = ()
    timings: Mapping[str, float] | None = None
    waits_for: str | None = None
    failure: FailureView | None = None
    page: str | None = None
    """Spark's own page of it."""

    @property
    def has_ended(self) -> bool:
        return self.state not in ("starting", "running")

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return max(0.0, (self.seen if self.ended is None else self.ended) - self.submitted)

    @property
    def items_in(self) -> int:
        """The items that its sources have emitted."""
        fed = {edge.destination for edge in self.edges}
        return sum(vertex.emitted for vertex in self.vertices if vertex.name not in fed)

    @property
    def items_out(self) -> int:
        """The items that its sinks have received."""
        feeding = {edge.source for edge in self.edges}
        return sum(vertex.received for vertex in self.vertices if vertex.name not in feeding)

    @property
    def rate_in(self) -> float:
        """The items per second that its sources emit."""
        fed = {edge.destination for edge in self.edges}
        return sum(vertex.emitted_rate for vertex in self.vertices if vertex.name not in fed)

    @property
    def rate_out(self) -> float:
        """The items per second that its sinks receive."""
        feeding = {edge.source for edge in self.edges}
        return sum(vertex.received_rate for vertex in self.vertices if vertex.name not in feeding)

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = _plain(self)
        return found

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> RunView:
        """Keys that are not known are left out: a newer version may have written them."""
        given = _known(cls, found)
        failure = given.get("failure")
        return cls(
            **{
                **given,
                "vertices": tuple(_vertex(each) for each in given.get("vertices", ())),
                "edges": tuple(EdgeView(**_known(EdgeView, e)) for e in given.get("edges", ())),
                "stages": tuple(StageView(**_known(StageView, e)) for e in given.get("stages", ())),
                "members": tuple(
                    MemberView(**_known(MemberView, each)) for each in given.get("members", ())
                ),
                "failure": None if failure is None else FailureView(**_known(FailureView, failure)),
            }
        )


def _vertex(found: Mapping[str, Any]) -> VertexView:
    given = _known(VertexView, found)
    heaviest, processors = given.get("heaviest_keys", ()), given.get("processors", ())
    return VertexView(
        **{
            **given,
            "heaviest_keys": tuple(HeavyKey(**_known(HeavyKey, each)) for each in heaviest),
            "processors": tuple(
                ProcessorView(**_known(ProcessorView, each)) for each in processors
            ),
            "fused_with": tuple(given.get("fused_with", ())),
        }
    )


def _known(kind: type[Any], found: Mapping[str, Any]) -> dict[str, Any]:
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in found.items() if name in names}


def _plain(value: Any) -> Any:
    """As `dataclasses.asdict`, which copies each number and so takes several times as long: a view
    has tens of thousands of them."""
    kind: Any = type(value)
    if kind in _ATOMS:
        return value
    if kind is tuple:
        return [_plain(each) for each in value]
    names = _names(kind)
    if names is None:
        return dict(value) if isinstance(value, Mapping) else value
    return {name: _plain(getattr(value, name)) for name in names}


_ATOMS: Final = frozenset({str, int, float, bool, type(None)})


@cache
def _names(kind: Any) -> tuple[str, ...] | None:
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else None
