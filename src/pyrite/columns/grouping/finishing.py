"""Makes results of states that have each group once: those of one grouping. Nothing is held."""

from __future__ import annotations

import pyarrow as pa

from pyrite.columns.frames import Frame, as_batch
from pyrite.columns.grouping.aggregates import GroupSpec
from pyrite.columns.grouping.inputs import Inputs
from pyrite.columns.grouping.kernels import ArrowKernels
from pyrite.columns.grouping.outputs import Outputs


class Finishing:
    def __init__(self, spec: GroupSpec, *, vertex: str) -> None:
        self._inputs = Inputs(spec, vertex)
        self._outputs = Outputs(spec, self._inputs, vertex)

    def finished(self, frame: Frame) -> pa.RecordBatch:
        """The results of a frame of states."""
        batch = as_batch(frame)
        self._inputs.add_states(batch.schema)
        return self._outputs.results(as_batch(ArrowKernels().held(batch, self._inputs.of_states)))
