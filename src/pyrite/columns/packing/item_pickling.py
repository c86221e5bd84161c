"""Pickles items that travel or are stored. Batches of rows inside them go as Arrow IPC.

A pickler that looks for batches is slower for items without any. So the first item of each packet
is looked at, and if items like it hold no batches, plain pickle is used.
"""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any, Final

import cloudpickle

from pyrite.columns.packing.pickling import IpcPickler, dumps_plainly

OFTEN_ENOUGH: Final = 16
"""After so many packets without a batch, items of the same class are taken to hold none."""
DEEPEST: Final = 3


def dumps(thing: Any, sample: Any) -> bytes:
    """Pickles a thing, of which `sample` is a part: items like it are all that may hold batches. If
    plain pickle fails, cloudpickle is used, which also pickles the code of classes and functions
    that other processes cannot import."""
    try:
        return dumps_by_reference(thing, sample)
    except Exception:
        return dumps_code(thing)


def dumps_by_reference(thing: Any, sample: Any) -> bytes:
    """The same, but raises if plain pickle fails."""
    if "pyarrow.lib" in sys.modules:
        kind = may_hold_batch(sample)
        if kind is not None:
            data = dumps_plainly(thing)
            _learn(kind, data)
            return data
    return pickle.dumps(thing, 5)


def dumps_code(thing: Any) -> bytes:
    """Pickles a thing with the code of its classes and functions that other processes cannot
    import."""
    if "pyarrow.lib" not in sys.modules:
        data: bytes = cloudpickle.dumps(thing, 5)
        return data
    file = io.BytesIO()
    IpcPickler(file).dump(thing)
    return file.getvalue()


def may_hold_batch(item: Any, depth: int = DEEPEST) -> type | None:
    """The first class inside an item whose objects may hold batches; None if there is none.

    >>> may_hold_batch(("a", 1)), may_hold_batch({"a": [1, 2]}), may_hold_batch([1, object()])
    (None, None, <class 'object'>)
    """
    kind = type(item)
    if kind in PLAIN:
        return None
    if depth and kind in _CONTAINERS:
        parts = (list(item.values()) if kind is dict else item)[:MOST_PARTS]
        if PLAIN.issuperset(map(type, parts)):
            return None
        for part in parts:
            found = may_hold_batch(part, depth - 1)
            if found is not None:
                return found
        return None
    return None if _packets_without.get(kind, 0) >= OFTEN_ENOUGH else kind


def _learn(kind: type, data: bytes) -> None:
    if _MARK in data:
        _packets_without[kind] = -sys.maxsize
    elif len(_packets_without) < MOST_KINDS and kind not in _CONTAINERS:
        _packets_without[kind] = _packets_without.get(kind, 0) + 1


MOST_PARTS: Final = 16
MOST_KINDS: Final = 1000
PLAIN: Final = frozenset({str, int, float, bool, bytes, complex, type(None)})
_CONTAINERS: Final = frozenset({tuple, list, dict})
_MARK: Final = dumps_plainly.__module__.encode()
"""Stands in each pickle that has a batch."""
_packets_without: dict[type, int] = {}
