"""Work that needs the CPU and nothing else."""

from __future__ import annotations


def burn(seed: int) -> int:
    """About a millisecond."""
    total = seed
    for number in range(15_000):
        total = (total * 31 + number) % 1_000_003
    return total
