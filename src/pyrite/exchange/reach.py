"""Whether the processes that run a job can reach the files that it reads and writes."""

from __future__ import annotations

from pyrite.errors import InvalidDAG
from pyrite.processors.files import ReadFiles, WriteFiles
from pyrite.processors.loops.steps import Step


def check_reach(step: Step, vertex: str, process: str) -> None:
    """Raises InvalidDAG if a step uses files that are in the memory of one process. `process` says
    what the processes are, such as `Spark worker`."""
    path = (
        step.pattern
        if isinstance(step, ReadFiles)
        else step.dir
        if isinstance(step, WriteFiles)
        else ""
    )
    if path.startswith("memory://"):
        raise InvalidDAG(
            f"vertex '{vertex}' uses '{path}': a memory:// path exists separately in each "
            f"{process}, so the others cannot see it; use a path or URL that all of them can reach"
        )
