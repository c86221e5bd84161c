"""The items of lists that a generator makes, one by one."""

from __future__ import annotations

from collections.abc import Generator
from itertools import chain
from typing import Any


class Flat(chain[Any]):
    """As fast as `chain`, and can be closed like the generator."""

    @classmethod
    def over(cls, blocks: Generator[list[Any], None, None]) -> Flat:
        items = cls.from_iterable(blocks)
        assert isinstance(items, Flat)
        items.close = blocks.close  # type: ignore[attr-defined]
        return items
