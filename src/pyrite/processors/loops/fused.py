"""What the engine knows of the processors that run steps, of one vertex or of several fused
vertices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

from pyrite.bad_records import Handling
from pyrite.processor import HandlesErrors
from pyrite.processors.loops.loop import Guard
from pyrite.processors.loops.steps import ReadStep, Step, WriteStep


@dataclass(frozen=True, slots=True)
class Link:
    """One vertex of a chain. If its inbound edge is partitioned, `guard` checks the keys there."""

    vertex: str
    step: Step
    guard: Guard | None = None
    handling: Handling | None = None
    """How errors of the step are handled; None if they just fail the job."""


class StepChain(Protocol):
    """The steps of one stretch of vertices. Many processors share one chain."""

    @property
    def links(self) -> Sequence[Link]: ...

    @property
    def source(self) -> ReadStep | None: ...

    @property
    def sink(self) -> WriteStep | None: ...

    def processor(self) -> FusedProcessor:
        """A new processor that runs the steps."""


class FusedProcessor(HandlesErrors):
    """Runs the steps of a chain."""

    chain: StepChain
    report: Any = None
    """What the sink's writer returned when it completed."""

    def vertex_counts(self) -> list[tuple[int, int]]:
        """(received, emitted) of each vertex of the chain."""
        raise NotImplementedError

    def vertex_at(self, frame: FrameType) -> str | None:
        """The vertex whose step runs in a frame of the stack; None if that is no frame of the
        chain's own loop."""
        return None

    def vertex_memory(self) -> list[tuple[int, int]]:
        """(held, spilled) bytes of each vertex of the chain."""
        raise NotImplementedError
