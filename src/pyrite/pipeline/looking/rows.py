"""Batches of rows, as people look at them: how rows are put together into batches means nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyrite.weights import is_batch


def row_by_row(items: Iterable[Any]) -> list[Any]:
    """The items, with the rows of each batch, as dicts, in its place."""
    found: list[Any] = []
    for item in items:
        if is_batch(item):
            found += item.to_pylist(maps_as_pydicts="strict")
        else:
            found.append(item)
    return found


def in_single_rows(items: Iterable[Any]) -> list[Any]:
    """The items, with batches of one row each in the place of each batch."""
    found: list[Any] = []
    for item in items:
        if is_batch(item):
            found += [item.slice(at, 1) for at in range(item.num_rows)]
        else:
            found.append(item)
    return found
