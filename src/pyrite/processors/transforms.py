"""map, filter and flat_map, which apply a plain function to one item at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pyrite.bad_records import Handling
from pyrite.boxes import holds_none
from pyrite.processors.checks import checked_function
from pyrite.processors.loops.inlining import call_or_inline
from pyrite.processors.loops.loop import PAUSE_EVERY, returned_none
from pyrite.processors.loops.steps import Lines, Transform, tried
from pyrite.processors.ready_made import Inner
from pyrite.traverser import iterate
from pyrite.weights import count_of, is_batch


def map(fn: Callable[[Any], Any]) -> Inner:
    """Emits `fn(item)` for each item.

    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> verify_processor(p.map(str.upper), ["a", "b"], ["A", "B"])
    """
    return Inner(Map(checked_function("map", "fn", fn)))


def filter(fn: Callable[[Any], Any]) -> Inner:
    """Emits the items for which `fn(item)` is true.

    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> verify_processor(p.filter(str.isupper), ["a", "B"], ["B"])
    """
    return Inner(Filter(checked_function("filter", "fn", fn)))


def flat_map(fn: Callable[[Any], Iterable[Any]]) -> Inner:
    """Emits all items of the iterable or Traverser that `fn(item)` returns. It may be endless.

    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> verify_processor(p.flat_map(str.split), ["a b", "c"], ["a", "b", "c"])
    """
    return Inner(FlatMap(checked_function("flat_map", "fn", fn)))


def noop() -> Inner:
    """Emits each item unchanged. At the end of a DAG it drops the items.

    >>> from pyrite import processors as p
    >>> from pyrite.testing import verify_processor
    >>> verify_processor(p.noop(), [1, 2], [1, 2])
    """
    return Inner(Pass())


@dataclass(frozen=True, slots=True)
class Map(Transform):
    fn: Callable[[Any], Any]

    def lines(self, index: int, value: str, vertex: str) -> Lines:
        result = f"v{index}"
        return Lines(
            result,
            [
                f"{result} = {call_or_inline(self.fn, f'fn{index}', value)}",
                f"if {result} is None: nothing{index}()",
            ],
            {f"fn{index}": self.fn, f"nothing{index}": returned_none(vertex, self.fn)},
        )


@dataclass(frozen=True, slots=True)
class Filter(Transform):
    fn: Callable[[Any], Any]

    def lines(self, index: int, value: str, vertex: str) -> Lines:
        return Lines(
            value,
            [f"if not fn{index}({value}): continue", f"n{index} += 1"],
            {f"fn{index}": self.fn},
            counts=True,
        )


@dataclass(frozen=True, slots=True)
class FlatMap(Transform):
    fn: Callable[[Any], Iterable[Any]]

    def lines(self, index: int, value: str, vertex: str) -> Lines:
        # A list is used directly. Other iterables may be endless, so they are read in parts.
        parts = f"(made{index},) if type(made{index}) is list else parts{index}(made{index})"
        lines = lines_of_parts(index, parts, returned_none(vertex, self.fn))
        lines.code.insert(0, f"made{index} = fn{index}({value})")
        lines.names.update({f"fn{index}": self.fn, f"parts{index}": parts_of})
        return lines

    def handling_lines(self, index: int, value: str, vertex: str, handling: Handling) -> Lines:
        # Everything that is made of an item is held until it is known that all of it is good.
        made = f"made{index}"
        making = [
            f"{made} = fn{index}({value})",
            f"if type({made}) is not list:",
            f"    rest{index} = parts{index}(iterate{index}({made}, fn{index}))",
            f"    {made} = []",
            f"    for part{index} in rest{index}:",
            f"        {made} += part{index}",
            "        yield",
            f"if holds_none{index}({made}): nothing{index}()",
        ]
        return Lines(
            f"v{index}",
            [
                *tried(making, index, value, handling),
                f"n{index} += len({made})",
                f"since{index} += len({made})",
                f"if since{index} >= {PAUSE_EVERY}:",
                f"    since{index} = 0",
                "    yield",
                f"for v{index} in {made}:",
            ],
            {
                f"fn{index}": self.fn,
                f"parts{index}": parts_of,
                f"iterate{index}": iterate,
                f"holds_none{index}": holds_none,
                f"nothing{index}": returned_none(vertex, self.fn),
            },
            counts=True,
            setup=[f"since{index} = 0"],
            whole=made,
        )


def lines_of_parts(index: int, parts: str, nothing: Callable[[], Any] | None) -> Lines:
    """The lines that emit the items of all lists in `parts`, an expression. They call `nothing` for
    an item that is None; if it is None itself, the items are not checked."""
    result = f"v{index}"
    code = [
        f"for part{index} in {parts}:",
        f"n{index} += len(part{index})",
        f"since{index} += len(part{index})",
        f"if since{index} >= {PAUSE_EVERY}:",
        f"    since{index} = 0",
        "    yield",
        f"for {result} in part{index}:",
    ]
    names = {}
    if nothing is not None:
        code.append(f"if {result} is None: nothing{index}()")
        names[f"nothing{index}"] = nothing
    return Lines(
        result, code, names, counts=True, setup=[f"since{index} = 0"], whole=f"part{index}"
    )


def parts_of(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Divides the items into lists of at most PAUSE_EVERY items, or of one batch of rows."""
    rest = iter(items)
    while part := list(islice(rest, 1)):
        if is_batch(part[0]):
            yield OneBatch(part)
        else:
            part += islice(rest, PAUSE_EVERY - 1)
            yield part


def weighed(parts: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """The same lists of items, except that each batch of rows is in a list of its own."""
    for part in parts:
        if part and is_batch(part[0]):
            for each in part:
                yield OneBatch([each])
        else:
            yield part


class OneBatch(list[Any]):
    """A list with one batch of rows. Its length is the number of rows: so a loop counts rows, and
    pauses after a few batches, before they fill the memory."""

    def __len__(self) -> int:
        return count_of((self[0],))


@dataclass(frozen=True, slots=True)
class Pass(Transform):
    def lines(self, index: int, value: str, vertex: str) -> Lines:
        return Lines(value)
