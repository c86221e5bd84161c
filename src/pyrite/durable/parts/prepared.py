"""What the sinks of a job have prepared, for whoever removes it when the job has not completed. It
can be loaded without the code of the job."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyrite.collections.memory import MemoryCollections
from pyrite.context import MetaSupplierContext
from pyrite.processors.loops.steps import WriteStep

logger = logging.getLogger("pyrite.durable")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSinks:
    """`sinks` has the name, the local parallelism and the step of each sink that commits."""

    job_name: str
    job_id: str
    execution_id: str
    member_count: int
    sinks: tuple[tuple[str, int, WriteStep], ...]

    def discard(self) -> None:
        """What cannot be removed is logged. May be repeated."""
        # In reverse: a folder that one sink made inside the folder of another goes first.
        for name, parallelism, sink in reversed(self.sinks):
            context = MetaSupplierContext(
                vertex_name=name,
                local_parallelism=parallelism,
                member_count=self.member_count,
                job_id=self.job_id,
                execution_id=self.execution_id,
                collections=MemoryCollections(),
                job_name=self.job_name,
            )
            try:
                sink.discard(context)
            except Exception as error:
                logger.warning(
                    "what vertex '%s' of %s has written is left: %s", name, self.job_name, error
                )
