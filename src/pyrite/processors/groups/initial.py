"""Initial values of folds. Each group and each execution starts from its own value.

The user's function may change the value in place, so a mutable value is copied deeply.
"""

from __future__ import annotations

import copy
import datetime
import uuid
from collections.abc import Callable
from typing import Any

from pyrite.errors import InvalidDAG
from pyrite.functions import message_of, shorten

_IMMUTABLE = (datetime.date, datetime.time, datetime.timedelta, uuid.UUID)


def checked_initial(processor: str, initial: Any) -> Any:
    """Returns the initial value. Raises InvalidDAG if it cannot be copied."""
    try:
        copy.deepcopy(initial)
    except Exception as error:
        raise InvalidDAG(
            f"initial of {processor}() must be a value that can be copied, because each group "
            f"starts from its own copy; copying {shorten(initial)} raised {message_of(error)}. "
            f"Use {_WITH_CONTAINER[processor]}, which calls a function to make each start value"
        ) from error
    return initial


def maker_of(initial: Any) -> Callable[[], Any] | None:
    """A function that makes a start value. None if all groups can share `initial` itself."""
    if is_shareable(initial):
        return None
    make: Callable[[], Any]
    if type(initial) in (list, set, bytearray) and all(map(is_shareable, initial)):
        make = initial.copy
        return make
    if type(initial) is dict and all(map(is_shareable, initial.values())):
        make = initial.copy
        return make
    return lambda: copy.deepcopy(initial)


def is_shareable(value: Any) -> bool:
    """Whether the value is immutable, so that it needs no copy."""
    if isinstance(value, _IMMUTABLE) and type(value).__module__ in ("datetime", "uuid"):
        return True
    if type(value) is frozenset:
        return all(map(is_shareable, value))
    return copy.deepcopy(value) is value  # numbers, strings, functions, and tuples of these


_WITH_CONTAINER = {
    "accumulate": "collect(new_container, fn)",
    "group_and_accumulate": "group_and_collect(key, new_container, collect)",
}
