"""The work of the chain comparison: five functions that every side calls, and the plain loop that
is the baseline.

The functions do very little, so that the measured time is the cost of passing items from one
function to the next.
"""

from __future__ import annotations

# The groups are strings, because one of the peers accepts no other keys. They are made in advance,
# so that making them is not measured.
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
    """Counts by group in a plain loop, without any tool."""
    counts: dict[str, int] = {}
    for item in range(items):
        number = scale(item)
        if keep(number):
            number = halve(number)
            key = group(number)
            counts[key] = count(counts.get(key, 0), number)
    return counts
