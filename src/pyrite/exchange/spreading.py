"""Generates the loops that append items to the lists of their partitions.

The hash of a string key is computed in the loop itself, because a function call per item would cost
more than the rest of the loop. Most items are pairs. Their halves are appended to two lists: then
the pairs need not be read from memory again to pickle them, which takes most of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import mmh3

from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import RoutingFailed
from pyrite.processors.loops.inlining import call_or_inline

Spread = Callable[[list[Any], list[list[Any]]], None]
SpreadPairs = Callable[[list[Any], list[list[Any]], list[list[Any]]], list[Any]]


def write_spread(edge: EdgePlan, partition: Callable[[Any], int], partition_count: int) -> Spread:
    """`spread(items, lists)` appends each item to the list of its partition."""
    spread: Spread = _written(_ANY, edge, partition, partition_count)
    return spread


def spread_when_needed(
    edge: EdgePlan, partition: Callable[[Any], int], partition_count: int
) -> Callable[[], Spread]:
    """Writes the loop of an edge when it is asked for first."""
    return cache(partial(write_spread, edge, partition, partition_count))


def write_spread_pairs(
    edge: EdgePlan, partition: Callable[[Any], int], partition_count: int
) -> SpreadPairs:
    """`spread(items, firsts, seconds)` appends the two halves of each pair to the two lists of its
    partition.

    It stops at the first item that is not a pair, and returns that item and all items after it.
    """
    spread: SpreadPairs = _written(_PAIRS, edge, partition, partition_count)
    return spread


def _written(
    template: str, edge: EdgePlan, partition: Callable[[Any], int], partition_count: int
) -> Any:
    settings = edge.settings
    key = "item" if settings.key is None else call_or_inline(settings.key, "key_of", "item")
    if template is _PAIRS:
        key = {"item[0]": "first", "item[1]": "second"}.get(key, key)
    number = (
        _ANY_KEY
        if settings.partitioner is not None
        else _STRINGS_AT_ONCE.format(count=partition_count, most=_MOST_KNOWN)
    )
    source = template.format(key=key, number=number)
    return _compiled(source)(settings.key, partition, mmh3.hash, edge.name, RoutingFailed)


_ANY_KEY = "                number = partition(key)"
# These must give the same numbers as `partition`. The partitions of integers are remembered.
_STRINGS_AT_ONCE = """\
                if type(key) is str:
                    text = key if key.isascii() else key.encode("utf-8", "surrogatepass")
                    number = hashed(text, 0, False) % {count}
                elif type(key) is int:
                    number = known_get(key)
                    if number is None:
                        number = partition(key)
                        if len(known) < {most}:
                            known[key] = number
                else:
                    number = partition(key)"""
_MOST_KNOWN = 100_000
"""Integer keys whose partition a loop remembers."""
_ANY = """\
def bind(key_of, partition, hashed, edge, RoutingFailed):
    known = {{}}
    known_get = known.get
    def spread(items, lists):
        item = None
        try:
            for item in items:
                key = {key}
{number}
                lists[number].append(item)
        except BaseException as error:
            raise RoutingFailed(edge, item, error) from error
    return spread
"""
_PAIRS = """\
def bind(key_of, partition, hashed, edge, RoutingFailed):
    known = {{}}
    known_get = known.get
    def spread(items, firsts, seconds):
        item = None
        following = iter(items)
        try:
            for item in following:
                if type(item) is not tuple or len(item) != 2:
                    return [item, *following]
                first, second = item
                key = {key}
{number}
                firsts[number].append(first)
                seconds[number].append(second)
        except BaseException as error:
            raise RoutingFailed(edge, item, error) from error
        return []
    return spread
"""


@lru_cache(maxsize=256)
def _compiled(source: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {}
    exec(compile(source, "<pyrite spread>", "exec"), namespace)
    bind: Callable[..., Any] = namespace["bind"]
    return bind
