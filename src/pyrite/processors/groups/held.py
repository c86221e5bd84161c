"""About how much memory the state of a step takes. It is estimated from a few of its parts, and
only when somebody asks, so that counting costs the step nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

_LOOKED_AT: Final = 16
"""How many parts of a container are looked at, from each of its ends."""
_DEEPEST: Final = 3


def about_bytes(state: Any, depth: int = _DEEPEST) -> int:
    """About how many bytes a value takes, with what is in it. Another thread may change it
    meanwhile.

    >>> 900_000 < about_bytes({number: "x" * 900 for number in range(1000)}) < 1_200_000
    True
    """
    try:
        size = sys.getsizeof(state)
    except Exception:  # a class may have a __sizeof__ of its own
        return 0
    if not depth or not isinstance(state, (dict, list, tuple, set, frozenset)):
        return size
    try:
        return size + _inside(state, depth)
    except Exception:  # another thread has just added something
        return size


def _inside(state: Any, depth: int) -> int:
    """Calls no methods of subclasses, which may do anything: the state has rows of the user's."""
    sizes: list[int] = []
    if isinstance(state, dict):
        pairs = dict.items(state)
        for end in (islice(pairs, _LOOKED_AT), islice(reversed(pairs), _LOOKED_AT)):
            sizes += [about_bytes(key, 1) + about_bytes(value, depth - 1) for key, value in end]
        return dict.__len__(state) * sum(sizes) // len(sizes) if sizes else 0
    kind: Any = next(kind for kind in (list, tuple, set, frozenset) if isinstance(state, kind))
    ends: Iterable[Any] = islice(kind.__iter__(state), _LOOKED_AT)
    if kind is list or kind is tuple:
        ends = (*ends, *kind.__getitem__(state, slice(-_LOOKED_AT, None)))
    sizes = [about_bytes(part, depth - 1) for part in ends]
    return int(kind.__len__(state)) * sum(sizes) // len(sizes) if sizes else 0
