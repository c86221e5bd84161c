"""The work of the chain comparison: five functions that every side calls, and the plain loop that
is the baseline.

The functions do as little as they can, so that what is measured is what carries the items from one
to the next.
"""

from __future__ import annotations

# Strings, since one of the peers takes no other keys; looked up, so that making them is not what is
# measured.
GROUPS = tuple(f"group {number}" for number in range(97))


def scale(number: int) -> int:
    return number * 3 + 1


def keep(number: int) -> bool:
    return number % 4 != 0


def halve(number: int) -> int:
    return number >> 1


def group(number: int) -> str:
    return GROUPS[number % 97]


def count(so_far: int, number: int) -> int:
    return so_far + 1


def plain_loop(items: int) -> dict[str, int]:
    """The counts by group, as anyone would write it without a tool."""
    counts: dict[str, int] = {}
    for item in range(items):
        number = scale(item)
        if keep(number):
            number = halve(number)
            key = group(number)
            counts[key] = count(counts.get(key, 0), number)
    return counts
