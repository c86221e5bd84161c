"""Readable names for the vertices of sources, sinks and the user's processors."""

from __future__ import annotations

import re
from typing import Any

from pyrite.processors.items import ReadOnce
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.transforms import Pass

_OTHER_NAMES = {ReadOnce: "read_items", Pass: "noop"}
"""Of steps that do not have the name of the function that makes them."""


def name_of(supplier: Any) -> str:
    """The name of what makes a supplier: that of its function or class, in small letters.

    >>> from pyrite import processors as p
    >>> name_of(p.read_items([1])), name_of(p.write_map("counts")), name_of(RuntimeError)
    ('read_items', 'write_map', 'runtime_error')
    """
    if isinstance(supplier, StepSupplier):
        kind = type(supplier.step)
        name = _OTHER_NAMES.get(kind, kind.__name__)
    else:
        name = getattr(supplier, "__name__", type(supplier).__name__)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return re.sub(r"[^a-z0-9_]+", "", words) or "process"
