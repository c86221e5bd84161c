"""What groupings, joins and sorts have in common, which kernels of Arrow or Polars compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrite.context import ProcessorContext
from pyrite.processors.columns.memory import memory_for
from pyrite.processors.columns.steps import BatchStep, FrameKind

if TYPE_CHECKING:
    from pyrite.columns.kernels import Kernels


@dataclass(frozen=True, slots=True)
class KernelStep(BatchStep):
    spec: Any
    kernels: Kernels
    memory: int | None = None

    @property
    def prefers(self) -> FrameKind:  # type: ignore[override]
        return self.kernels

    def options(self, context: ProcessorContext) -> dict[str, Any]:
        """The arguments of the kernel of one processor. Raises if it cannot run here."""
        from pyrite.columns.kernels import check_kernels

        check_kernels(self.kernels, context.vertex_name)
        return {
            "kernels": self.kernels,
            "budget": memory_for(self.memory, context),
            "vertex": context.vertex_name,
        }
