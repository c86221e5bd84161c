"""Places in a list of pickles, with the errors of Python's own lists."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from pyrite.collections.stored.values import unpacked


def checked_index(index: Any) -> int:
    """Raises TypeError if this cannot be an index."""
    try:
        return operator.index(index)
    except TypeError:
        raise TypeError(
            f"list indices must be integers or slices, not {type(index).__name__}"
        ) from None


def place_of(value: Any, values: Sequence[bytes]) -> int:
    """Where a value is first in a list of pickles. Raises ValueError if it is not there."""
    for place, each in enumerate(values):
        found = unpacked(each)
        if found is value or found == value:
            return place
    raise ValueError("list.remove(x): x not in list")
