"""What counts as a number where a user gives one: not True and False, which Python takes for 1 and
0."""

from __future__ import annotations

import math
from typing import TypeGuard


def is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_whole(value: object, *, least: float = -math.inf) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
