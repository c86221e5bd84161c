"""Numbers as people read them: durations, rates, bytes."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """
    >>> [duration(s) for s in (0.0123, 12.34, 75, 3600, 90061)]
    ['12.3 ms', '12.3 s', '75.0 s', '1 h 0 min', '25 h 1 min']
    """
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def short(number: float) -> str:
    """A number with three digits and a unit.

    >>> [short(n) for n in (0, 0.25, 7, 42.5, 999.6, 1234, 45_678, 999_999, 1.5e9, 2e12)]
    ['0', '0.25', '7', '42.5', '1 k', '1.23 k', '45.7 k', '1 M', '1.5 G', '2 T']
    """
    unit = ""
    for unit in ("", " k", " M", " G", " T"):
        if _three_digits(number) < 1000 or unit == " T":
            break
        number /= 1000
    return f"{_three_digits(number):,.10g}{unit}"


def rate(per_second: float) -> str:
    """
    >>> rate(0), rate(0.04), rate(1234.5)
    ('', '0.04/s', '1.23 k/s')
    """
    return f"{short(per_second)}/s" if per_second > 0 else ""


def size(count: int) -> str:
    """
    >>> [size(n) for n in (0, 999, 1500, 25_000_000)]
    ['0 B', '999 B', '1.5 kB', '25 MB']
    """
    number, space, unit = short(count).partition(" ")
    return f"{number} {unit}B" if space else f"{number} B"


def _three_digits(number: float) -> float:
    return float(f"{number:.3g}") if number < 1000 else round(number)
