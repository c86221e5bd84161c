"""Readable names for the vertices of sources, sinks and the user's processors."""

from __future__ import annotations

import re
from typing import Any

from pyrite.processors.chain import StepSupplier
from pyrite.processors.items import ReadOnce


def name_of(supplier: Any) -> str:
    """The name of what makes a supplier: that of its function or class, in small letters.

    >>> from pyrite import processors as p
    >>> name_of(p.read_items([1])), name_of(p.write_map("counts")), name_of(RuntimeError)
    ('read_items', 'write_map', 'runtime_error')
    """
    if isinstance(supplier, StepSupplier):
        if isinstance(supplier.step, ReadOnce):
            return "read_items"
        name = type(supplier.step).__name__
    else:
        name = getattr(supplier, "__name__", type(supplier).__name__)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return re.sub(r"[^a-z0-9_]+", "", words) or "process"
