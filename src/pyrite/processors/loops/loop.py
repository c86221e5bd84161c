"""Generates the Python loop for a chain of transforms, which may end with a fold.

The loop calls the user's functions one after the other, with no engine code between them. Its
source depends only on the kinds of steps in the chain. So it is compiled once for each combination
of kinds, and then bound to the functions of a chain. When a user's function raises, the line number
in the traceback tells which vertex the function belongs to, so the loop need not keep track of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import FrameType, TracebackType
from typing import Any

from pyrite.bad_records import BadRecord, Handling
from pyrite.boxes import none_emitted
from pyrite.errors import ProcessorError
from pyrite.functions import describe, same, shorten
from pyrite.processors.groups.counting import counting_lines
from pyrite.processors.loops.steps import Fold, Lines, Transform
from pyrite.weights import count_of

PAUSE_EVERY = 1024
"""The loop pauses after a flat map has made this many items, so that one input item cannot block
the thread for long."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Checks the keys of a partitioned edge inside a chain. There is only one receiver, but an
    invalid key must still be refused."""

    edge: str
    key: Callable[[Any], Any] | None
    check: Callable[[Any], Any]
    always: bool
    """Whether every key must be checked: a user's partitioner may refuse any key."""
    columns: tuple[str, ...] = ()
    """The columns that are checked, if the items are batches."""

    def lines(self, index: int, value: str) -> Lines:
        code = [f"key{index} = keyof{index}({value})" if self.key else f"key{index} = {value}"]
        if self.always:
            code.append(f"check{index}(key{index})")
        else:  # keys of these two types are the most common, and always valid
            code.append(
                f"if type(key{index}) is not str and type(key{index}) is not int: "
                f"check{index}(key{index})"
            )
        return Lines(value, code, {f"keyof{index}": self.key, f"check{index}": self.check})


@dataclass(frozen=True, slots=True)
class Place:
    """The step that a line of the loop belongs to, by its index in the chain, and the variable that
    holds the item of that step; empty if errors name no item."""

    index: int
    value: str


@dataclass(frozen=True, slots=True)
class Loop:
    """`run(items, out, room, counts, state, spill)` passes the items through the chain. If errors
    of its steps are handled, it also takes `bad`, the handlers.

    It appends results to `out`, and adds the number of items that each step emitted to `counts`. If
    the chain has a flat map, `pauses` is true and `run` is a generator that yields when `out` holds
    `room` items, and after every PAUSE_EVERY items. Otherwise `run` is a plain function that
    appends at most one item to `out` for each input item.
    """

    run: Callable[..., Any]
    pauses: bool
    places: tuple[Place, ...]
    counted: tuple[int, ...]
    """The steps that are in `counts`. All other steps emit as many items as they receive."""

    def explain(self, error: BaseException) -> Failure | None:
        """The step that raised an error in `run`, and its item."""
        traceback = self.own_frame(error)
        if traceback is None and isinstance(error.__cause__, StopIteration):
            # Python replaces a StopIteration that leaves a generator with a RuntimeError.
            error = error.__cause__
            traceback = self.own_frame(error)
        if traceback is None:
            return None
        place = self.places[traceback.tb_lineno - 1]
        variables = traceback.tb_frame.f_locals
        made = variables.get(f"made{place.index}", ())
        if isinstance(error, TypeError) and not hasattr(made, "__iter__"):
            function = variables[f"fn{place.index}"]
            error = ProcessorError(
                f"return value of {describe(function)} must be an iterable or a Traverser; got "
                f"{shorten(made)}"
            )
        elif isinstance(error, TypeError):
            function, key = (variables.get(f"{name}{place.index}") for name in ("keyof", "key"))
            error = unhashable_key(function, key) or error
        return Failure(place.index, variables.get(place.value), error)

    def counted_in(self, frame: FrameType | None) -> list[int]:
        """By step, how many items a frame of `run` has counted that are not in `counts` yet."""
        counts = {} if frame is None else frame.f_locals
        size = max(self.counted, default=-1) + 1
        return [counts.get(f"n{index}", 0) for index in range(size)]

    def own_frame(self, error: BaseException) -> TracebackType | None:
        """The entry of `run` in the traceback of an error."""
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_frame.f_code is not self.run.__code__:
            traceback = traceback.tb_next
        return traceback


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a loop stopped: the index of the step (-1 for the check of an input item), the item, and
    the error to report."""

    index: int
    item: Any
    error: BaseException
    is_result: bool = False
    """Whether the item is a result of a fold."""


def unhashable_key(function: object, key: Any) -> ProcessorError | None:
    """The error to report if a key function returned a key that is not hashable; None if the key
    is. The function is None if it is a part of the loop, or if the items are their own keys."""
    try:
        hash(key)
    except TypeError as error:
        returned = f"return value of the key function {describe(function)}"
        return ProcessorError(
            f"{'a key' if function is None else returned} must be hashable, because groups are "
            f"kept in a dict; got {shorten(key)} ({error}). Return a tuple, a string, or another "
            "immutable value from the key function"
        )
    return None


_NONE: Mapping[int, Handling] = {}


def write_loop(
    steps: Sequence[tuple[str, Transform | Fold | Guard]],
    *,
    emits: bool,
    check_first: str | None,
    handled: Mapping[int, Handling] = _NONE,
    weighs: bool = False,
) -> Loop:
    """The loop for (vertex, step) pairs. If `emits` is false, results are dropped. `check_first` is
    the vertex to name if an input item is None; if it is None itself, the input is not checked.

    The errors of the steps in `handled` do not end the loop. Its items are passed to handlers: the
    argument `bad` has one for each step, and a last one for the input, which is step -1.

    If it weighs, a batch of rows that a step emits counts as its rows."""
    writer = _Writer(handled)
    if -1 in handled:
        writer.add_bad_input(check_first)
    elif check_first is not None:
        writer.add(
            Place(-1, "v"), "if v is None: nothing()", {"nothing": raises_for_none(check_first)}
        )
    value = "v"
    counted = []
    guarded_key: Guard | None = None
    for index, (vertex, step) in enumerate(steps):
        if isinstance(step, Guard):
            if _is_merged(step, steps[index + 1 :]):
                guarded_key = step  # the fold uses the same key, and checks each new one
                continue
            lines = step.lines(index, value)
        elif isinstance(step, Fold):
            check = guarded_key.check if guarded_key else None
            lines = (
                step.handling_lines(index, value, vertex, check, handled[index])
                if index in handled
                else step.lines(index, value, vertex, check)
            )
        elif index in handled:
            lines = step.handling_lines(index, value, vertex, handled[index])
        else:
            lines = step.lines(index, value, vertex)
        if weighs and isinstance(step, Transform) and not lines.whole:
            _weigh(lines, index)
        whole = _counted_whole(steps[index + 1 :], index, lines)
        if whole is not None and whole[0] in handled:  # each item that raises must be found
            whole = None
        writer.add_step(index, value, lines, whole)
        if lines.counts:
            counted.append(index)
        value = lines.value
    if emits:
        writer.add(Place(len(steps), value), f"append({value})")
        if writer.pauses:
            writer.add(Place(len(steps), value), "if len(out) >= room: yield")
    return writer.finish(counted)


def _weigh(lines: Lines, index: int) -> None:
    more = " - 1" if lines.counts else ""
    lines.code.append(f"n{index} += rows{index}(({lines.value},)){more}")
    lines.names[f"rows{index}"] = count_of
    lines.counts = True


def _is_merged(guard: Guard, following: Sequence[tuple[str, Transform | Fold | Guard]]) -> bool:
    """Whether the step after a guard is a fold by the same key that the guard checks."""
    fold = following[0][1] if following else None
    return isinstance(fold, Fold) and guard.key is not None and same(fold.key_function(), guard.key)


def _counted_whole(
    following: Sequence[tuple[str, Transform | Fold | Guard]], index: int, lines: Lines
) -> tuple[int, Lines] | None:
    """If step `index` makes lists and the next step only counts: the index of the counting step,
    and the lines that count a whole list at once. Otherwise None."""
    if not lines.whole or not following:
        return None
    guard = following[0][1]
    merged = isinstance(guard, Guard) and _is_merged(guard, following[1:])
    fold = following[1][1] if merged else guard
    if not isinstance(fold, Fold) or not fold.only_counts:
        return None
    at = index + (2 if merged else 1)
    check = guard.check if isinstance(guard, Guard) else None
    return at, counting_lines(
        at, lines.whole, lines.value, lines.code[_last_loop(lines) + 1 :], check
    )


def _last_loop(lines: Lines) -> int:
    return max(number for number, line in enumerate(lines.code) if line.startswith("for "))


class _Writer:
    def __init__(self, handled: Collection[int]) -> None:
        self._lines: list[str] = []
        self._places: list[Place] = []
        self._handles = bool(handled)
        self._setup = [f"bad{index} = bad[{index}]" for index in sorted(handled) if index >= 0]
        self._names: dict[str, Any] = {}
        self._depth = 3
        self.pauses = False

    def add_step(
        self, index: int, value: str, lines: Lines, whole: tuple[int, Lines] | None
    ) -> None:
        """Adds the lines of a step. `whole` has lines of a later step, which go before the last
        loop of this step."""
        self._names.update(lines.names)
        self._setup += lines.setup
        if lines.counts:
            self._setup.append(f"n{index} = 0")
        item = Place(index, value if lines.names_item else "")
        for number, line in enumerate(lines.code):
            if whole is not None and number == _last_loop(lines):
                later, counting = whole
                self._names.update(counting.names)
                for each in counting.code:
                    # The lines that check for None are this step's, so they name its item.
                    own = each.strip() in lines.code
                    self.add(item if own else Place(later, counting.value), each)
            self.add(item, line)

    def add_bad_input(self, check_first: str | None) -> None:
        """Adds the lines that pass what a source could not read to its handler."""
        self._setup.append("bad_input = bad[-1]")
        item = Place(-1, "v")
        if check_first is not None:
            nothing = BadRecord(None, none_emitted(check_first))
            self.add(item, "if v is None: v = nothing", {"nothing": nothing})
        self.add(item, "if type(v) is bad_record:", {"bad_record": BadRecord})
        self.add(item, "    bad_input(v.item, v.error)")
        self.add(item, "    continue")

    def add(self, place: Place, line: str, names: dict[str, Any] | None = None) -> None:
        self._lines.append("    " * self._depth + line)
        self._places.append(place)
        self._names.update(names or {})
        self.pauses = self.pauses or line.endswith("yield")
        if line.startswith("for "):
            self._depth += 1

    def finish(self, counted: list[int]) -> Loop:
        nowhere = Place(-1, "v")
        if self._lines and self._lines[-1].endswith(":"):  # nobody takes what the last loop makes
            self.add(self._places[-1], "pass")
        head = [
            f"def bind({', '.join(self._names)}):",
            f"    def run(items, out, room, counts, state, spill{', bad' * self._handles}):",
            "        append = out.append",
            *("        " + line for line in self._setup),
            "        for v in items:",
        ]
        # Another thread that adds n to the count must not count anything twice.
        counting = [f"n{i}, counts[{i}] = 0, counts[{i}] + n{i}" for i in counted]
        # A line that ends the loop early counts what has been done, too.
        leave = "; ".join([*counting, "return"])
        body = [re.sub(r": return$", f": {leave}", line) for line in self._lines]
        body = body or ["            pass"]
        places = [nowhere] * len(head) + (self._places or [nowhere])
        tail = ["        " + line for line in counting] + ["    return run"]
        bind = _compiled("\n".join(head + body + tail))
        run = bind(**self._names)
        return Loop(run, self.pauses, tuple(places + [nowhere] * len(tail)), tuple(counted))


@lru_cache(maxsize=1024)
def _compiled(source: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {}
    exec(compile(source, "<pyrite loop>", "exec"), namespace)
    bind: Callable[..., Any] = namespace["bind"]
    return bind


def raises_for_none(vertex: str, what: str = "") -> Callable[..., Any]:
    """A function that the lines call when a vertex emits None."""

    def nothing() -> None:
        raise none_emitted(vertex, what)

    return nothing


def returned_none(vertex: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that a step's lines call when the user's function returned None."""
    return raises_for_none(vertex, f", which {describe(function)} returned")
