"""Counts equal items one list at a time. This is for a flat map that returns lists, followed by a
grouping that only counts, as in a word count.

The C function behind `collections.Counter` takes half the time of the generated loop. It does not
check keys, so the keys that it added are checked afterwards.
"""

from __future__ import annotations

from collections import _count_elements  # type: ignore[attr-defined]
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from pyrite.keys import NAN_FREE, one_nan
from pyrite.processors.groups.spill import Unlimited
from pyrite.processors.loops.steps import Lines


def counting_lines(
    index: int,
    items: str,
    value: str,
    none_lines: list[str],
    check_new_key: Callable[[Any], Any] | None,
) -> Lines:
    """The lines that count the list `items` at once, unless the grouping has begun to spill. They
    go before the loop over the items of the list, and skip it.

    `none_lines` are the lines that check whether `value`, a new key, is None.
    """
    code = [
        f"if limit{index} == unlimited{index}:",
        f"    before{index} = len(state)",
        f"    try: count{index}(state, {items})",
        f"    except BaseException: {value} = uncounted{index}({items}); raise",
        f"    if len(state) > before{index}:",
        f"        for {value} in last{index}(state, len(state) - before{index}):",
        *(f"            {line}" for line in none_lines),
        f"            check{index}({value})" if check_new_key else "            pass",
        f"        merge{index}(state, len(state) - before{index})",
        "    continue",
    ]
    names = {
        f"unlimited{index}": Unlimited.limit,
        f"count{index}": _count_elements,
        f"uncounted{index}": first_unhashable,
        f"last{index}": last_keys,
        f"check{index}": check_new_key,
        f"merge{index}": merge_nans,
    }
    return Lines(value, code, names)


def last_keys(state: dict[Any, Any], count: int) -> Iterator[Any]:
    """The last `count` keys that were added."""
    return islice(reversed(state), count)


def merge_nans(state: dict[Any, Any], count: int) -> None:
    """Adds the counts of all NaNs among the last `count` keys to the one NaN that stands for all
    NaNs."""
    if NAN_FREE.issuperset(map(type, islice(reversed(state), count))):
        return
    for key in list(last_keys(state, count)):
        one = one_nan(key)
        if one is not key:
            state[one] = state.pop(key) + state.get(one, 0)


def first_unhashable(items: list[Any]) -> Any:
    """The first item that is not hashable, which the error message names."""
    for item in items:
        try:
            hash(item)
        except Exception:
            return item
    return None
