"""The job graphs on which the tools are compared. A job is a number. Each shape is a function that
returns the upstream jobs of a job."""

from __future__ import annotations

LAYER = 1000


def noop(*upstream: object) -> None:
    """The function of every job."""


def wide(job: int) -> list[int]:
    """All jobs are independent."""
    return []


def chain(job: int) -> list[int]:
    """Each job depends on the previous one."""
    return [job - 1] if job else []


def layered(job: int) -> list[int]:
    """Each job depends on two jobs of the previous layer."""
    above = job // LAYER - 1
    return [] if above < 0 else [above * LAYER + job % LAYER, above * LAYER + (job * 7 + 3) % LAYER]


SHAPES = {"wide": wide, "chain": chain, "layered": layered}
