"""How many bytes a columnar step may hold before it spills to disk."""

from __future__ import annotations

import os

from pyrite.context import ProcessorContext
from pyrite.processors.checks import checked_count

LEAST = 16 << 10
"""With less, a step would do nothing but write and read files."""
SHARE = 4
"""Without a limit, the processors of a vertex hold up to this part of the machine's memory."""


def checked_memory(processor: str, memory: int | None) -> int | None:
    return None if memory is None else checked_count(processor, "memory", memory, least=1)


def memory_for(asked: int | None, context: ProcessorContext) -> int:
    """The bytes for one processor: what the step asks for, what the engine allows, or else a share
    of the machine's memory."""
    return max(LEAST, _asked_or_allowed(asked, context))


def _asked_or_allowed(asked: int | None, context: ProcessorContext) -> int:
    if asked is not None:
        return asked
    if context.batch_budget is not None:
        return context.batch_budget
    if context.memory_budget is not None:
        return context.memory_budget
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return whole // SHARE // context.local_parallelism
