"""The graphs of jobs that the tools are compared on. A job is a number; each shape gives the
upstream jobs of a job."""

from __future__ import annotations

LAYER = 1000


def noop(*upstream: object) -> None:
    """What every job does."""


def wide(job: int) -> list[int]:
    """No job waits for another."""
    return []


def chain(job: int) -> list[int]:
    """Each job waits for the one before."""
    return [job - 1] if job else []


def layered(job: int) -> list[int]:
    """Each job waits for two of the layer above."""
    above = job // LAYER - 1
    return [] if above < 0 else [above * LAYER + job % LAYER, above * LAYER + (job * 7 + 3) % LAYER]


SHAPES = {"wide": wide, "chain": chain, "layered": layered}
