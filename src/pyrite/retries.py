"""Retry: how often a step is tried again with an item for which it has raised."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pyrite.errors import InvalidDAG, ProcessorError
from pyrite.functions import describe, shorten


@dataclass(frozen=True, slots=True)
class Retry:
    """Tries a step again, up to `times` times, with an item for which it has raised one of the
    exceptions `on`. After the last try, the `on_error` of the step applies.

    `wait` is the number of seconds before each of these tries, or a function from the number of
    tries that have failed to the seconds. While a step waits, everything else goes on. The items
    behind the one that waits keep their order; an async `map` goes on with those in flight.
    Each try gets the same object: a function must not change an item before it raises.

    >>> from pyrite import Pipeline, Retry
    >>> answers = iter([None, "ready"])
    >>> def ask(n):
    ...     return next(answers) or 1 / 0
    >>> Pipeline().read_from([1]).map(ask, retry=Retry(3, on=ZeroDivisionError)).collect()
    ['ready']
    """

    times: int
    wait: float | Callable[[int], float] = 0.0
    on: type[Exception] | tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        if isinstance(self.times, bool) or not isinstance(self.times, int) or self.times < 1:
            raise InvalidDAG(
                f"times of Retry must be a whole number from 1 up; got {shorten(self.times)}"
            )
        if not callable(self.wait) and not _is_seconds(self.wait):
            raise InvalidDAG(
                "wait of Retry must be a number of seconds from 0 up, or a function from the "
                f"number of failed tries to it; got {shorten(self.wait)}"
            )
        kinds = self.on if isinstance(self.on, tuple) else (self.on,)
        if not kinds or not all(isinstance(k, type) and issubclass(k, Exception) for k in kinds):
            raise InvalidDAG(
                "on of Retry must be a class of exceptions, or a tuple of them; got "
                f"{shorten(self.on)}"
            )
        object.__setattr__(self, "on", kinds)

    def at_once(self) -> Retry:
        """The same retry without any wait."""
        return replace(self, wait=0.0)

    def seconds(self, error: BaseException, failures: int) -> float | None:
        """How long to wait after so many failed tries with an item, of which this is the last
        error; None if it is not tried again.

        >>> Retry(2, wait=lambda n: 2.0**n).seconds(ValueError(), 2)
        4.0
        >>> print(Retry(2).seconds(ValueError(), 3))
        None
        """
        if failures > self.times or not isinstance(error, self.on):
            return None
        if not callable(self.wait):
            return self.wait
        seconds = self.wait(failures)
        if not _is_seconds(seconds):
            raise ProcessorError(
                f"return value of {describe(self.wait)}, the wait of a Retry, must be a number of "
                f"seconds from 0 up; got {shorten(seconds)}"
            )
        return seconds


def checked_retry(retry: Any, where: str) -> Retry | None:
    """The retry of a step. `where` says in the message whose it is."""
    if retry is None or isinstance(retry, Retry):
        return retry
    raise InvalidDAG(
        f"retry of {where} must be pyrite.Retry(times, ...), or None; got {shorten(retry)}"
    )


def _is_seconds(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and 0 <= value < math.inf
