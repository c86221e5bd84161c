"""The work that durable jobs are compared by: numbers become pairs, which are counted by key."""

from __future__ import annotations

from collections import Counter

BATCH = 1000
KEYS = 1000


def pair(number: int) -> tuple[int, int]:
    return number % KEYS, 1


def counts(items: int) -> dict[int, int]:
    return dict(Counter(number % KEYS for number in range(items)))
