"""How long a job waits before it is tried again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from pyrite.workload.system.numbers import is_number


@dataclass(frozen=True, slots=True)
class RetryWait:
    """The waiting time before a retry, in seconds. The first one is `first`; each further one is
    `growth` times as long, up to `most`. Each is then made longer or shorter at random by up to
    the part `jitter`, so that jobs that failed together are not tried again together.

    >>> wait = RetryWait(first=1, growth=2, most=60, jitter=0.1)
    >>> [wait.seconds(failure, chance=0.5) for failure in (1, 2, 3, 10)]
    [1.0, 2.0, 4.0, 60.0]
    >>> round(wait.seconds(1, chance=0.0), 6), round(wait.seconds(1, chance=1.0), 6)
    (0.9, 1.1)
    """

    first: float = 1.0
    growth: float = 2.0
    most: float = 60.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if not (is_number(self.first) and self.first >= 0):
            raise ValueError(f"first must be a number of seconds, 0 or more; got {self.first!r}")
        if not (is_number(self.growth) and self.growth >= 1):
            raise ValueError(f"growth must be a number, 1 or more; got {self.growth!r}")
        if not (is_number(self.most) and self.most >= self.first):
            raise ValueError(
                f"most must be a number of seconds, not below first ({self.first!r}); got "
                f"{self.most!r}"
            )
        if not (is_number(self.jitter) and 0 <= self.jitter <= 1):
            raise ValueError(f"jitter must be a number from 0 to 1; got {self.jitter!r}")

    def seconds(self, failure: int, *, chance: float) -> float:
        """The wait after the failure with this number, counted from 1. `chance` is a random number
        from 0 to 1."""
        try:
            wait = min(self.most, self.first * self.growth ** (failure - 1))
        except OverflowError:
            wait = self.most
        return float(wait * (1 + self.jitter * (2 * chance - 1)))


def retry_wait(value: object) -> RetryWait:
    """What the user gave as retry_wait=. A number is the first wait; the waits then double, up to
    60 seconds or the number itself if that is more. A table or file may have a dict of the fields
    of a RetryWait. Raises ValueError if the value is something else."""
    if isinstance(value, RetryWait):
        return value
    if isinstance(value, Mapping) and set(value) <= {field.name for field in fields(RetryWait)}:
        return RetryWait(**value)
    if is_number(value) and value >= 0:
        return RetryWait(first=value, most=max(60.0, value))
    raise ValueError(
        "retry_wait must be a number of seconds, 0 or more, or a "
        "RetryWait(first=1, growth=2, most=60, jitter=0.1)"
    )
